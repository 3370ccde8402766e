//! The parts of an inventory as rows, for a page that people read.

use super::inventory::{Element, Inventory, Role, Supplier};

/// A part of an image; texts are empty where nothing is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartRow {
    /// What it is.
    pub kind: &'static str,
    pub name: String,
    pub version: String,
    /// An expression of SPDX.
    pub licence: String,
    /// Who maintains it.
    pub supplier: String,
    /// The layer that brought it.
    pub layer: String,
    /// Who answers for it, as the manifest pins that.
    pub proof: String,
    /// Whether it is a module that is linked into programs.
    pub is_module: bool,
}

impl Inventory {
    /// Everything but the image and its system.
    pub fn parts(&self) -> Vec<PartRow> {
        self.elements.iter().filter_map(row).collect()
    }
}

fn row(element: &Element) -> Option<PartRow> {
    let kind = match element.role {
        Role::Image | Role::System => return None,
        Role::Base => "base image",
        Role::Bundle => "bundle",
        Role::Package => "package",
        Role::Program => "program",
        Role::GoProgram => "program of Go",
        Role::GoModule => "module of Go",
        Role::Container => "container image",
    };
    let fact = |name| element.facts.get(name).cloned().unwrap_or_default();
    Some(PartRow {
        kind,
        name: element.name.clone(),
        version: element.version.clone().unwrap_or_default(),
        licence: element.licence.clone().unwrap_or_default(),
        supplier: element.supplier.as_ref().map(shown).unwrap_or_default(),
        layer: fact("layer"),
        proof: fact("proof"),
        is_module: element.role == Role::GoModule,
    })
}

fn shown(supplier: &Supplier) -> String {
    match &supplier.email {
        Some(email) => format!("{} <{email}>", supplier.name),
        None => supplier.name.clone(),
    }
}
