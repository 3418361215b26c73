//! Two hosts on one machine: network namespaces with a wire between them, and host names of their own.

use crate::place::Place;
use crate::process::run;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

/// Addresses of the hosts.
pub const ADDRESSES: [&str; 2] = ["10.203.77.1", "10.203.77.2"];

/// The wire's ends have the names of the namespaces.
pub struct Hosts {
    names: [String; 2],
}

impl Hosts {
    /// Makes them.
    ///
    /// # Panics
    /// If they cannot be made: it takes root and `ip`.
    #[expect(clippy::new_without_default, reason = "it makes namespaces")]
    pub fn new() -> Hosts {
        let hosts = Hosts { names: ["a", "b"].map(|end| format!("pc{}{end}", std::process::id())) };
        let [a, b] = &hosts.names;
        hosts.names.iter().for_each(|name| ip(&["netns", "add", name]));
        ip(&["-n", a, "link", "add", a, "type", "veth", "peer", "name", b, "netns", b]);
        for (name, address) in hosts.names.iter().zip(ADDRESSES) {
            ip(&["-n", name, "address", "add", &format!("{address}/24"), "dev", name]);
            ip(&["-n", name, "link", "set", name, "up"]);
            ip(&["-n", name, "link", "set", "lo", "up"]);
        }
        hosts
    }

    /// The name of a host's network device.
    pub fn device(&self, host: usize) -> &str {
        &self.names[host]
    }

    /// Lets a command run on a host.
    pub fn on(&self, host: usize, command: &Command) -> Command {
        let mut there = Command::new("ip");
        there.args(["netns", "exec", &self.names[host], "unshare", "--uts", "sh", "-c"]);
        there.args(["hostname \"$0\"; exec \"$@\"", &self.names[host]]);
        there.arg(command.get_program()).args(command.get_args());
        command.get_current_dir().map(|folder| there.current_dir(folder));
        there.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        there
    }

    /// What launchers are told to use in place of `ssh`: a script in the folder of `place` that starts the command on the
    /// second host, whatever options stand before the host's name.
    pub fn shell(&self, place: &Place) -> PathBuf {
        let path = place.path().join("remote-shell");
        let name = &self.names[1];
        let text = format!(
            "#!/bin/sh\nwhile [ \"${{1#-}}\" != \"$1\" ]; do shift; done\n\
             [ \"$1\" = {} ] || {{ echo \"no host $1\" >&2; exit 1; }}\nshift\n\
             exec ip netns exec {name} unshare --uts sh -c 'hostname {name}; '\"$*\"\n",
            ADDRESSES[1]
        );
        fs::write(&path, text).expect("a script can be written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("it can be made a program");
        path
    }

    /// Bytes that a host has sent over the wire.
    pub fn sent(&self, host: usize) -> u64 {
        let name = &self.names[host];
        let outcome = run(Command::new("ip").args(["-n", name, "-s", "-j", "link", "show", name])).succeeded();
        let links: Value = serde_json::from_str(&outcome.stdout).expect("ip prints JSON");
        links[0]["stats64"]["tx"]["bytes"].as_u64().unwrap_or_else(|| panic!("no bytes: {links}"))
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for name in &self.names {
            let _ = Command::new("ip").args(["netns", "delete", name]).status();
        }
    }
}

fn ip(words: &[&str]) {
    run(Command::new("ip").args(words)).succeeded();
}
