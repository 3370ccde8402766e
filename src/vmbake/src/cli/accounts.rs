//! The last step of `vmbake update`: evaluates the packages' scripts once, and pins the ids of the accounts that they create.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::Failure;
use vmbake_bake::release::provenance::BuilderId;
use vmbake_bake::{BakeRequest, has_taken_accounts, plan_accounts};
use vmbake_common::catalog::Catalog;
use vmbake_common::input;
use vmbake_common::progress::{Event, Progress};
use vmbake_common::qcow2_compression::Qcow2Compression;
use vmbake_manifest::{Additions, Manifest, Target};
use vmbake_pin::resolve::{Resolver, WantedBase};
use vmbake_pin::update::{UpdateRequest, pin_accounts};

/// Inputs of [`AccountPlan::pin`].
pub(super) struct AccountPlan<'a> {
    pub(super) request: &'a UpdateRequest,
    pub(super) resolver: &'a Resolver<'a>,
    pub(super) layers: Catalog,
}

impl AccountPlan<'_> {
    /// Contents of the existing manifests, before they are updated.
    pub(super) fn texts(&self) -> BTreeMap<Target, Vec<u8>> {
        let text =
            |target: &Target| Some((target.clone(), input::read(&self.manifest(target), input::MAX_INPUT).ok()?));
        self.request.targets.iter().filter_map(text).collect()
    }

    /// Pins the accounts of each image that installs packages by name, unless its manifest is unchanged and has them pinned,
    /// and no layer has taken their ids since.
    pub(super) fn pin(&self, before: &BTreeMap<Target, Vec<u8>>, progress: &Progress) -> Result<(), Failure> {
        for target in &self.request.targets {
            let asks = self.request.packages.get(target).is_some_and(|requests| !requests.is_empty());
            if !asks {
                continue;
            }
            let bake = self.bake(target);
            let manifest = Manifest::load(&bake.manifest)?;
            let same = before.get(target).is_some_and(|text| text == manifest.text());
            let is_pinned = manifest.content().accounts.is_some() && !has_taken_accounts(&bake, &manifest)?;
            if same && is_pinned && !self.request.refresh {
                continue;
            }
            let accounts = plan_accounts(&bake, progress)?;
            let (users, groups) = (accounts.users.len() as u64, accounts.groups.len() as u64);
            let new = pin_accounts(self.request, self.resolver.sources, target, accounts)?;
            if new && users + groups > 0 {
                progress.emit(Event::PinnedAccounts { manifest: target.name(), users, groups });
            }
        }
        Ok(())
    }

    fn manifest(&self, target: &Target) -> PathBuf {
        self.request.folder.join(format!("{}.json", target.name()))
    }

    fn bake(&self, target: &Target) -> BakeRequest {
        let Resolver { client, store, sources, anchors, base, .. } = self.resolver;
        let (base, partition) = match base {
            Some(WantedBase::Disk { path, partition }) => (Some(path.clone()), *partition),
            _ => (None, None),
        };
        let Target { kind, os, arch } = target.clone();
        BakeRequest {
            manifest: self.manifest(target),
            kind,
            os,
            arch,
            base,
            partition,
            layers: self.layers.clone(),
            more: Additions::default(),
            store: (*store).clone(),
            sources: (*sources).clone(),
            anchors: (*anchors).clone(),
            client: Some((*client).clone()),
            size: None,
            epoch: None,
            formats: Vec::new(),
            compression: Qcow2Compression::default(),
            out: self.request.folder.clone(),
            force: false,
            builder: BuilderId::default(),
            threads: self.request.threads,
        }
    }
}
