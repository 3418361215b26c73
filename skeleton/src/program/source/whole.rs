//! What stands around the bodies of a source: tables, the functions that are used, and `main`.
use super::rooms::{Room, landings};
use super::{Head, Writer, harmless, sections};
use crate::program::scale::LEAD;
use crate::program::source::{FAR, KERNEL, MAIN};
use std::collections::BTreeSet;
use std::fmt::Write;

impl Writer<'_> {
    /// The whole text.
    pub(super) fn whole(&mut self, bodies: &str, head: &Head<'_>) -> String {
        let plan = self.plan;
        let mut out = String::new();
        let _ = writeln!(
            out,
            "/* A performance skeleton of\n *     {}\n * with {} ranks, written by phasecast. It stands for that program: it has the same messages and the same loops,\n * and takes about 1/{:.1} of its time (1/{:.1} was asked for) where it was traced. README.md says more.\n *\n * topology: {}\n */",
            harmless(head.program),
            plan.ranks,
            head.ratio.1,
            head.ratio.0,
            harmless(head.topology.unwrap_or("none was recognised")),
        );
        out.push_str("#include <mpi.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n\n");
        let _ = writeln!(out, "#define RANKS {}", plan.ranks);
        let _ = writeln!(out, "#define SLOTS {}", self.slots());
        let _ = writeln!(out, "#define PARTS {}", self.parts.len());
        if self.spreads > 0 {
            let _ = writeln!(out, "#define SPREADS {}", self.spreads);
        }
        out.push_str(&self.rates.defines());
        let far = self.rates.far.filter(|_| self.used.contains("far"));
        out.push_str(&far.map(|far| far.defines()).unwrap_or_default());
        out.push_str("\nstatic int rank;\n\n");
        let mut used = std::mem::take(&mut self.used);
        self.tables(&mut out, &used);
        if used.contains("detached")
            || used.iter().any(|name| {
                name.contains("send_to")
                    || name.contains("receive")
                    || *name == "exchange"
                    || *name == "start_send"
                    || *name == "start_ssend"
            })
        {
            used.insert("oneself");
        }
        used.extend(["parts", "report"]);
        // The first iteration of a shortened loop stands for many: what connections and buffers cost when they are used for
        // the first time would, too.
        if self.parts.iter().any(|part| part.count < part.full && part.count < LEAD) {
            used.insert("start_over");
        }
        if sections().any(|(name, text)| used.contains(name) && text.contains("ready(")) {
            used.insert("ready");
        }
        if sections().any(|(name, text)| used.contains(name) && text.contains("arrival(")) {
            used.insert("arrival");
        }
        if !self.groups.is_empty() {
            used.insert("part_of");
        }
        if self.groups.iter().all(|(_, of, _)| self.is_world(*of)) {
            used.remove("part_of");
        }
        let needs_alone = self.groups.iter().any(|(_, of, alone)| !alone.is_empty() || !self.is_world(*of));
        out.push_str(KERNEL);
        out.push('\n');
        if used.contains("far") {
            out.push_str(FAR);
            out.push('\n');
        }
        for (name, text) in sections().filter(|(name, _)| used.contains(name)) {
            let text = match name {
                "collective" if !needs_alone => text.split("static struct group oneself").next().unwrap_or(text),
                _ => text,
            };
            out.push_str(text.trim_end());
            out.push_str("\n\n");
        }
        for (name, ..) in &self.groups {
            let _ = writeln!(out, "static struct group {name};");
        }
        out.push_str(bodies.trim_start_matches('\n'));
        self.once(&mut out, &used);
        out.push('\n');
        self.main(&mut out, &used);
        out
    }

    fn is_world(&self, group: usize) -> bool {
        matches!(self.plan.groups[group].members.as_slice(), [all] if all.iter().copied().eq(0..self.plan.ranks))
    }

    fn tables(&self, out: &mut String, used: &BTreeSet<&'static str>) {
        let ranks = 0..self.plan.ranks;
        if !self.directions.is_empty() || used.contains("none") {
            out.push_str("/* Where messages go: for each rank, its neighbour there. */\n#define NOBODY MPI_PROC_NULL\n#define ONESELF (-1000)\n#define ALONE(direction) ((direction)[rank] == ONESELF)\n");
        }
        if used.contains("none") {
            table(out, "static const int NONE[RANKS]", ranks.clone().map(|_| "NOBODY".into()));
        }
        for (name, of, alone) in &self.directions {
            let peers = &self.plan.directions[*of].peer;
            let cell = |rank: u32| match peers[rank as usize] {
                _ if alone.contains(&rank) => "ONESELF".to_owned(),
                Some(peer) => peer.to_string(),
                None => "NOBODY".to_owned(),
            };
            table(out, &format!("static const int {name}[RANKS]"), ranks.clone().map(cell));
        }
        for (at, (name, of, alone)) in self.groups.iter().enumerate() {
            if !alone.is_empty() {
                let cell = |rank: u32| u8::from(alone.contains(&rank)).to_string();
                table(out, &format!("static const char {name}_alone[RANKS]"), ranks.clone().map(cell));
            } else if !self.is_world(*of) {
                let comm_of = &self.plan.comm_of[*of];
                let number = |rank: u32| comm_of[rank as usize].map_or("-1".into(), |comm| comm.to_string());
                let place = |rank: u32| {
                    let members = comm_of[rank as usize].map(|comm| &self.plan.comms[comm as usize]);
                    members.and_then(|all| all.iter().position(|m| *m == rank)).unwrap_or(0).to_string()
                };
                table(out, &format!("static const int number_{at}[RANKS]"), ranks.clone().map(number));
                table(out, &format!("static const int place_{at}[RANKS]"), ranks.clone().map(place));
            }
        }
        if self.plan.classes.len() > 1 {
            let class = |rank: u32| self.plan.class_of[rank as usize].to_string();
            table(out, "static const int class_of[RANKS]", ranks.map(class));
        }
        out.push('\n');
    }

    /// The main function, from the text that all skeletons have of it.
    fn main(&self, out: &mut String, used: &BTreeSet<&'static str>) {
        let mut there = true;
        for line in MAIN.lines().skip_while(|line| !line.starts_with("int main")) {
            match (line.get(..4), line.get(4..)) {
                (Some("//? "), Some(name)) => there = used.contains(name),
                (Some("//= "), Some("groups")) => self.communicators(out),
                (Some("//= "), Some(name)) if used.contains(name) => self.buffers(out, used.contains("arrival")),
                (Some("//= "), _) => (),
                _ if line == "//." => there = true,
                _ if there => {
                    let _ = writeln!(out, "{line}");
                }
                _ => (),
            }
        }
    }

    /// Makes the communicators.
    fn communicators(&self, out: &mut String) {
        for (at, (name, of, alone)) in self.groups.iter().enumerate() {
            // One that some ranks are alone in is the whole one to the others, which may call it by that name elsewhere.
            let whole = self.groups.iter().find(|(_, other, ranks)| other == of && ranks.is_empty());
            let base = match whole {
                _ if self.is_world(*of) => "(struct group){MPI_COMM_WORLD, RANKS, rank}".to_owned(),
                Some((whole, ..)) if !alone.is_empty() => whole.clone(),
                _ => format!("part_of(number_{at}, place_{at})"),
            };
            let _ = writeln!(out, "    {name} = {base};");
            if !alone.is_empty() {
                let _ = writeln!(out, "    if ({name}_alone[rank])\n        {name} = oneself();");
            }
        }
    }

    /// Each rank makes the buffers that it needs; where messages arrive there are several in a row for long ones.
    fn buffers(&self, out: &mut String, arrival: bool) {
        let kinds = self.kinds();
        let several = kinds.all.len() > 1;
        if several {
            table(out, "    static const int kind_of[RANKS]", kinds.of.iter().map(usize::to_string));
        }
        let slots = self.slots();
        let rooms = kinds.all.iter().enumerate().flat_map(|(kind, rooms)| {
            let landings = landings(rooms);
            let room = move |(at, room): (&usize, &Room)| {
                let received = if *at > slots { 0 } else { room.received.max(8) };
                let mut words = vec![at.to_string(), room.sent.max(8).to_string(), received.to_string()];
                if arrival {
                    let (count, apart) = landings.get(at).copied().unwrap_or((1, received));
                    words.extend([count.to_string(), apart.to_string()]);
                }
                if several {
                    words.insert(0, kind.to_string());
                }
                format!("{{{}}}", words.join(", "))
            };
            rooms.iter().map(room)
        });
        let which = if several { "kind, which" } else { "which" };
        let landings = if arrival { ", landings, apart" } else { "" };
        let head = format!(
            "    static const struct {{\n        int {which};\n        unsigned long sent, received{landings};\n    }} rooms[]"
        );
        table(out, &head, rooms);
        out.push_str("    for (unsigned long i = 0; i < sizeof rooms / sizeof *rooms; i++) {\n");
        if several {
            out.push_str("        if (rooms[i].kind != kind_of[rank])\n            continue;\n");
        }
        let incoming = if arrival {
            "make_landings(rooms[i].which, rooms[i].received, rooms[i].landings, rooms[i].apart)"
        } else {
            "incoming[rooms[i].which] = buffer(rooms[i].received)"
        };
        let _ = writeln!(
            out,
            "        outgoing[rooms[i].which] = buffer(rooms[i].sent);\n        if (rooms[i].received)\n            {incoming};\n    }}",
        );
    }

    /// One round.
    fn once(&self, out: &mut String, used: &BTreeSet<&'static str>) {
        out.push_str("\n/* One round. */\nstatic void once(void)\n{\n");
        if used.contains("turns") {
            out.push_str("    memset(turn, 0, sizeof turn);\n");
        }
        match self.plan.classes.len() {
            1 => out.push_str("    class_0();\n"),
            classes => {
                out.push_str("    switch (class_of[rank]) {\n");
                for class in 0..classes {
                    let _ = writeln!(out, "    case {class}:\n        class_{class}();\n        break;");
                }
                out.push_str("    }\n");
            }
        }
        if used.contains("requests") {
            out.push_str("    wait_for(0, SLOTS - 1);\n");
        }
        if used.contains("detached") {
            out.push_str(
                "    for (int i = 0; i < detached_open; i++)\n        MPI_Wait(detached + i, MPI_STATUS_IGNORE);\n    detached_open = 0;\n",
            );
        }
        out.push_str("    part(0, 1.0);\n}\n");
    }
}

fn table(out: &mut String, head: &str, cells: impl Iterator<Item = String>) {
    let _ = write!(out, "{head} = {{");
    let mut width = head.len() + 4;
    for (at, cell) in cells.enumerate() {
        let separator = if at == 0 { "" } else { "," };
        if width + cell.len() + 2 > 116 {
            let _ = write!(out, "{separator}\n    {cell}");
            width = 4 + cell.len();
        } else {
            let space = if at == 0 { "" } else { " " };
            let _ = write!(out, "{separator}{space}{cell}");
            width += cell.len() + 2;
        }
    }
    out.push_str("};\n");
}
