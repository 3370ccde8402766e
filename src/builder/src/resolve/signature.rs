use super::{ResolveError, Resolver};
use crate::download::Downloaded;
use crate::manifest::Proof;
use crate::sources::Demand;
use std::collections::BTreeMap;
impl Resolver<'_> {
    pub(super) fn signed(
        &self,
        _: &Demand,
        _: &BTreeMap<String, String>,
        _: &Downloaded,
        name: &str,
    ) -> Result<Proof, ResolveError> {
        Err(ResolveError::Needs { name: name.to_owned() })
    }
}
