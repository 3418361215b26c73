//! A machine as text that people like to read: TOML with a comment for each column, one line for each point.
use super::{Collective, Costs, Link, Machine, Place};
use std::fmt::Write;

impl Link {
    /// Its columns of costs with the names that they have in the file.
    pub fn columns(&self) -> [(&'static str, &Costs); 7] {
        [
            ("send", &self.send),
            ("receive", &self.receive),
            ("isend", &self.isend),
            ("irecv", &self.irecv),
            ("wait", &self.wait),
            ("wait_send", &self.wait_send),
            ("transfer", &self.transfer),
        ]
    }
}

/// What stands above a column.
fn remark(column: &str) -> &'static str {
    match column {
        "send" => "in MPI_Send, the receiver waits already",
        "receive" => "in MPI_Recv, the message has arrived or its sender waits already",
        "isend" => "in MPI_Isend, the receiver waits already",
        "irecv" => "in MPI_Irecv, before the message is sent",
        "wait" => "in MPI_Wait for an earlier MPI_Irecv, the message has arrived or its sender waits already",
        "wait_send" => "in MPI_Wait for an earlier MPI_Isend, the receiver waits already",
        _ => "from the call of MPI_Send to the return of the MPI_Recv that waits for it",
    }
}

impl Machine {
    /// The file that [`Machine::parse`] reads.
    pub fn text(&self) -> String {
        let mut text = String::from(
            "# A machine of phasecast: what messages, collectives and computation cost here. Times are in seconds, medians;\n\
             # spread is half the distance between the quartiles.\n",
        );
        let _ = writeln!(text, "format = {}\ncreated = {} # seconds since 1970", self.format, self.created);
        let hosts: Vec<String> = self.identity.hosts.iter().map(|host| quoted(host)).collect();
        let _ = writeln!(
            text,
            "\n[identity]\nhosts = [{}]\ncpu = {}\ncores = {} # logical processors of a node\nmpi = {}\nranks = {} # that took part",
            hosts.join(", "),
            quoted(&self.identity.cpu),
            self.identity.cores,
            quoted(&self.identity.mpi),
            self.identity.ranks
        );
        if let Some(life) = &self.life {
            let _ = writeln!(
                text,
                "\n# Starting and ending a run.\n[life]\nlaunch_s = {} # the launcher, before and after its processes\ninit_s = {} # MPI_Init\nfinalize_s = {} # MPI_Finalize\nspread_s = {}",
                float(life.launch_s),
                float(life.init_s),
                float(life.finalize_s),
                float(life.spread_s)
            );
        }
        self.links.iter().for_each(|link| write_link(&mut text, link));
        for (i, collective) in self.collectives.iter().enumerate() {
            if i == 0 {
                text.push_str(
                    "\n# From the entry of the last to the exit of the last where all enter together, by the bytes that a trace shows;\n\
                     # of collectives with a root: time in the call of the root, and of the others.\n",
                );
            }
            write_collective(&mut text, collective);
        }
        for (i, kernel) in self.kernels.iter().enumerate() {
            if i == 0 {
                text.push_str("\n# One pass of a small computation, with all ranks computing at once; time of the processor where there are stops.\n");
            }
            let (name, seconds, spread) = (quoted(&kernel.name), float(kernel.seconds), float(kernel.spread));
            let _ = writeln!(text, "[[kernels]]\nname = {name}\nseconds = {seconds}\nspread = {spread}");
        }
        if let Some(stops) = &self.stops {
            stops.write(&mut text);
        }
        text
    }
}

fn write_link(text: &mut String, link: &Link) {
    let (place, what) = match link.place {
        Place::Within => ("within", "on one node"),
        Place::Between => ("between", "between two nodes"),
    };
    let _ = writeln!(
        text,
        "\n# Messages {what}.\n[[links]]\nplace = \"{place}\"\nlatency_s = {}\nbandwidth = {} # bytes per second",
        float(link.latency_s),
        float(link.bandwidth)
    );
    if let Some(eager) = link.eager_bytes {
        let _ = writeln!(text, "eager_bytes = {eager} # the longest message that does not wait for its receiver");
    }
    let _ = writeln!(text, "overlap = {} # share of a long exchange that computation hides", float(link.overlap));
    if let Some(times) = link.contention {
        let _ = writeln!(text, "contention = {} # times that an exchange takes as long as one message", float(times));
    }
    for (name, costs) in link.columns() {
        if name != "wait_send" || !costs.is_empty() {
            let _ = writeln!(text, "# {}", remark(name));
            write_costs(text, name, costs);
        }
    }
}

fn write_collective(text: &mut String, collective: &Collective) {
    let _ = writeln!(text, "[[collectives]]\nname = {}\nranks = {}", quoted(&collective.name), collective.ranks);
    write_costs(text, "costs", &collective.costs);
    for (name, costs) in [("root", &collective.root), ("others", &collective.others)] {
        if !costs.is_empty() {
            write_costs(text, name, costs);
        }
    }
}

fn write_costs(text: &mut String, name: &str, costs: &Costs) {
    let _ = writeln!(text, "{name} = [");
    for cost in &costs.0 {
        let (seconds, spread) = (float(cost.seconds), float(cost.spread));
        let _ = writeln!(text, "  {{ bytes = {}, seconds = {seconds}, spread = {spread} }},", cost.bytes);
    }
    text.push_str("]\n");
}

/// A number in the shortest form that is read back the same.
fn float(value: f64) -> String {
    let magnitude = value.abs();
    if magnitude == 0.0 || (1e-3..1e6).contains(&magnitude) { format!("{value:?}") } else { format!("{value:e}") }
}

fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}
