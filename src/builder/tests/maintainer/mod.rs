//! What maintainer scripts do by Debian's commands, each as the real one does it.

mod parts;
mod accounts;
mod debconf;
mod sysusers;
mod tmpfiles;
