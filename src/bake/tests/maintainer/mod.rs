//! Debian's commands in maintainer scripts, compared with the real ones.

mod parts;
mod helpers;
mod accounts;
mod alternatives;
mod apache;
mod capabilities;
mod debconf;
mod divert;
mod dpkg;
mod locale;
mod programs;
mod statoverride;
mod sysusers;
mod sysv;
mod tmpfiles;
mod units;
