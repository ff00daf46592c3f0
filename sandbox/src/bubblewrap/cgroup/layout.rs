//! Which control group trees this machine has, and where this process stands in them.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::files::{set, told};

/// What to do when no usable group is found.
const REMEDY: &str = "run as root, or give this service a delegated cgroup v2 subtree \
                      (for systemd: Delegate=yes)";

/// This runner's own directory in each tree that is used.
#[derive(Debug)]
pub(super) enum Layout {
    V1 {
        memory: PathBuf,
        pids: PathBuf,
        cpu: PathBuf,
        unified: Option<PathBuf>,
    },
    V2 {
        parent: PathBuf,
    },
}

impl Layout {
    pub(super) fn discover(runner_name: &str) -> Result<Self, String> {
        let read =
            |path: &str| fs::read_to_string(path).map_err(|error| told(Path::new(path), &error));
        let trees = Trees::parse(&read("/proc/self/mountinfo")?, &read("/proc/self/cgroup")?);
        let name = format!("stackship-{runner_name}");
        let own = |tree: &Path| {
            let directory = tree.join(&name);
            fs::create_dir_all(&directory).map_err(|error| {
                format!("cannot make {}: {error}; {REMEDY}", directory.display())
            })?;
            Ok::<_, String>(directory)
        };
        let v1 = |controller: &str| trees.v1.get(controller).map(PathBuf::as_path);
        if let (Some(memory), Some(pids), Some(cpu)) = (v1("memory"), v1("pids"), v1("cpu")) {
            let unified = trees.unified.as_deref().map(own).transpose()?;
            let unified = unified.filter(|directory| directory.join("cgroup.kill").exists());
            return Ok(Self::V1 {
                memory: own(memory)?,
                pids: own(pids)?,
                cpu: own(cpu)?,
                unified,
            });
        }
        let Some(tree) = &trees.unified else {
            return Err(format!(
                "no memory and pids controllers are mounted; {REMEDY}"
            ));
        };
        leave_for_a_leaf(tree)?;
        let parent = own(tree)?;
        enable_controllers(&parent)?;
        Ok(Self::V2 { parent })
    }

    /// This runner's own directory of each tree.
    pub(super) fn parents(&self) -> Vec<&PathBuf> {
        match self {
            Self::V1 {
                memory,
                pids,
                cpu,
                unified,
            } => [memory, pids, cpu].into_iter().chain(unified).collect(),
            Self::V2 { parent } => vec![parent],
        }
    }
}

/// A v2 group with processes cannot pass controllers on, so the runner moves one level down.
fn leave_for_a_leaf(tree: &Path) -> Result<(), String> {
    let leaf = tree.join("runner");
    fs::create_dir_all(&leaf)
        .map_err(|error| format!("cannot make {}: {error}; {REMEDY}", leaf.display()))?;
    set(&leaf.join("cgroup.procs"), &std::process::id().to_string())?;
    enable_controllers(tree)
}

fn enable_controllers(directory: &Path) -> Result<(), String> {
    set(
        &directory.join("cgroup.subtree_control"),
        "+memory +pids +cpu",
    )
    .map_err(|error| format!("{error}; {REMEDY}"))
}

/// This process's group in each tree.
#[derive(Debug, Default, PartialEq, Eq)]
struct Trees {
    v1: HashMap<String, PathBuf>,
    unified: Option<PathBuf>,
}

impl Trees {
    fn parse(mountinfo: &str, own: &str) -> Self {
        let mut trees = Self::default();
        for mount in mountinfo.lines().filter_map(Mount::parse) {
            let membership = own.lines().filter_map(|line| {
                let mut parts = line.splitn(3, ':').skip(1);
                Some((parts.next()?, parts.next()?))
            });
            for (controllers, path) in membership {
                let directory = || mount.directory(path);
                if mount.kind == "cgroup2" && controllers.is_empty() {
                    trees.unified = Some(directory());
                } else if mount.kind == "cgroup" {
                    let here = |name: &&str| mount.options.split(',').any(|option| option == *name);
                    for name in controllers
                        .split(',')
                        .filter(|name| !name.is_empty())
                        .filter(here)
                    {
                        trees.v1.insert(name.to_owned(), directory());
                    }
                }
            }
        }
        trees
    }
}

struct Mount<'a> {
    root: &'a str,
    point: &'a str,
    kind: &'a str,
    options: &'a str,
}

impl<'a> Mount<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let (front, back) = line.split_once(" - ")?;
        let mut front = front.split(' ').skip(3);
        let mut back = back.split(' ');
        Some(Self {
            root: front.next()?,
            point: front.next()?,
            kind: back.next()?,
            options: back.nth(1)?,
        })
    }

    /// A mount can show a subtree only; paths of memberships are from the tree's root.
    fn directory(&self, path: &str) -> PathBuf {
        let below = path.strip_prefix(self.root).unwrap_or(path);
        Path::new(self.point).join(below.trim_start_matches('/'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hybrid_machine_has_v1_limits_and_a_v2_tree() {
        let trees = Trees::parse(
            "30 24 0:26 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
             31 24 0:27 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n\
             32 24 0:28 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
            "4:memory:/a/b\n1:cpu,cpuacct:/\n0::/\n",
        );
        assert_eq!(trees.v1["memory"], Path::new("/sys/fs/cgroup/memory/a/b"));
        assert_eq!(trees.v1["cpu"], Path::new("/sys/fs/cgroup/cpu,cpuacct"));
        assert_eq!(
            trees.unified.as_deref(),
            Some(Path::new("/sys/fs/cgroup/unified"))
        );
    }

    #[test]
    fn a_mount_of_a_subtree_is_taken_off_the_path() {
        let trees = Trees::parse(
            "30 24 0:26 /docker/x /sys/fs/cgroup rw shared:1 - cgroup2 cgroup rw,nsdelegate\n",
            "0::/docker/x/service\n",
        );
        assert_eq!(
            trees.unified.as_deref(),
            Some(Path::new("/sys/fs/cgroup/service"))
        );
        assert!(trees.v1.is_empty());
    }
}
