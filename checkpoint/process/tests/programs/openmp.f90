! OpenMP in Fortran, saved between two parallel regions: the team is made again.
program openmp
  use, intrinsic :: iso_c_binding
  use omp_lib
  interface
    integer(c_long) function gate(i) bind(c)
      import c_long
      integer(c_long), value :: i
    end function
  end interface
  integer :: i, s, t, rounds
  integer(c_long) :: r
  s = 0
  !$omp parallel do reduction(+:s) num_threads(3)
  do i = 1, 1000000
    s = s + mod(i, 7)
  end do
  open(11, status='scratch')
  write(11, *) s
  flush(11)
  r = gate(1_c_long)
  t = 0
  rounds = 0
  !$omp parallel do reduction(+:t) num_threads(3)
  do i = 1, 1000000
    t = t + mod(i, 7)
  end do
  rewind(11)
  read(11, *) i
  r = r + 0 * gate(2_c_long)
  if (t == s .and. i == s .and. s == 2999998) then
    print '(i0/a)', r, 'passed'
  else
    print *, r, s, t, i, 'failed'
  end if
end program
