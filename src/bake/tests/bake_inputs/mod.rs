//! Artifacts and layers, valid and hostile, through the stages of a bake from the manifest to the merged tree.

pub mod parts;
mod archives;
mod debs;
mod relations;
mod links;
mod privileges;
mod bombs;
mod ownership;
mod triggers;
mod scripts;
mod alternatives;
mod keys;
mod unit_installs;
mod started_units;
mod settings;
mod logins;
mod choices;
mod effective;
mod finished;
mod present;
mod upgrades;
mod hygiene;
mod host_keys;
mod judge;
mod regenerated;
mod unpacked;
mod mutations;
