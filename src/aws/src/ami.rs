//! `vmbake publish aws`: creates an Amazon machine image (AMI) from a disk image, without an instance or a bucket.
//!
//! The EBS direct APIs write the disk to a snapshot block by block, and the snapshot is registered. Existing resources
//! are found by the disk digest in a tag, so a second run does only what is missing. An incomplete snapshot is kept
//! after a failure, and the next run resumes it. Complete resources are never deleted.

mod journal;
mod block_list;
mod parent;
mod register;
mod distribution;
mod upload;
mod verify;
pub mod error;
mod gc;
mod identity;
pub mod options;

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use crate::Aws;
use crate::{LaunchPermission, MachineImage};
use vmbake_common::progress::{Event, counted, human_bytes};

use distribution::RegionalImage;
use error::AmiError;
use identity::{DISK_DIGEST, Subject};
use journal::Journal;
use options::AmiOptions;
use parent::{Parent, Search, Sent, sent};
use upload::{Transferred, Upload};
use verify::Made;
use vmbake_publish::ebs::blocks::BLOCK;
use vmbake_publish::{Collection, PublishReport, PublishRequest, Publisher};

/// Maximum time for a snapshot to complete, and for an AMI to become available.
const AVAILABILITY_TIMEOUT: Duration = Duration::from_secs(2 * 60 * 60);
/// Example list price of 1,000 block uploads, in US dollars; the actual one depends on the region.
const USD_PER_1000_PUTS: f64 = 0.006;

/// The result of publishing, or of a plan.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AmiReport {
    pub account: String,
    /// The primary region.
    pub region: String,
    /// Name of the AMI.
    pub name: String,
    /// Digest of the disk: the tag that identifies it.
    pub disk_digest: String,
    /// `x86_64` or `arm64`.
    pub architecture: &'static str,
    /// The boot mode.
    pub boot_mode: &'static str,
    /// Disk size in GiB.
    pub volume_size: u64,
    /// The AMI; none in a dry run.
    pub image_id: Option<String>,
    pub snapshot_id: Option<String>,
    /// The parent snapshot.
    pub parent: Option<String>,
    /// Why there is no parent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_parent: Option<String>,
    /// Whether the AMI existed already.
    pub reused: bool,
    /// Number of uploaded blocks, or to be uploaded.
    pub blocks_sent: u64,
    /// Their length.
    pub bytes_sent: u64,
    /// Blocks uploaded by an earlier attempt.
    pub blocks_resumed: u64,
    /// Blocks read back and compared.
    pub blocks_verified: u64,
    /// Number of other changes: tags, permissions, deprecations, parameters, copies.
    pub changes: usize,
    /// AMIs in other regions.
    pub copies: BTreeMap<String, String>,
}

impl Publisher for Aws {
    type Options<'a> = AmiOptions<'a>;
    type Report = AmiReport;
    type Error = AmiError;

    fn plan(&self, request: &PublishRequest<'_>, options: &AmiOptions<'_>) -> Result<AmiReport, AmiError> {
        Run::begin(self, request, options)?.plan()
    }

    fn publish(&self, request: &PublishRequest<'_>, options: &AmiOptions<'_>) -> Result<AmiReport, AmiError> {
        Run::begin(self, request, options)?.publish()
    }

    fn list(&self, family: &str, keep: usize) -> Result<Collection, AmiError> {
        gc::list(self, family, keep)
    }

    fn remove(&self, collection: &mut Collection) -> Result<(), AmiError> {
        gc::remove(self, collection)
    }
}

/// A run of `publish`.
struct Run<'a> {
    aws: &'a Aws,
    request: &'a PublishRequest<'a>,
    options: &'a AmiOptions<'a>,
    subject: Subject,
    account: String,
}

impl<'a> Run<'a> {
    fn begin(aws: &'a Aws, request: &'a PublishRequest<'a>, options: &'a AmiOptions<'a>) -> Result<Self, AmiError> {
        // Fails early without credentials, before reading the image.
        let account = aws.caller()?.account;
        let subject = Subject::read(request, options)?;
        let run = Self { aws, request, options, subject, account };
        run.check_public()?;
        Ok(run)
    }

    fn publish(&self) -> Result<AmiReport, AmiError> {
        let mut report = self.report();
        let image = match self.found()? {
            Some(image) => {
                report.reused = true;
                image
            }
            None => self.make(&mut report)?,
        };
        let source = RegionalImage {
            aws: self.aws.clone(),
            image: register::until_available(self.aws, image, AVAILABILITY_TIMEOUT)?,
        };
        self.distribute(source, &mut report)?;
        Ok(report)
    }

    fn plan(&self) -> Result<AmiReport, AmiError> {
        let mut report = self.report();
        match self.found()? {
            Some(image) => {
                report.reused = true;
                report.set_image(&image);
            }
            None => {
                let encrypted = self.check_account()?;
                self.may_register()?;
                match self.completed()? {
                    Some(snapshot) => report.snapshot_id = Some(snapshot),
                    None => {
                        let (_, list) = self.choose_parent(encrypted, &mut report)?;
                        report.count(Transferred { blocks: list.len() as u64, resumed: 0 });
                    }
                }
            }
        }
        Ok(report)
    }

    fn report(&self) -> AmiReport {
        let subject = &self.subject;
        AmiReport {
            account: self.account.clone(),
            region: self.aws.region().to_owned(),
            name: subject.name.clone(),
            disk_digest: subject.digest.to_string(),
            architecture: subject.architecture,
            boot_mode: subject.boot_mode.name(),
            volume_size: subject.blocks.gib(),
            image_id: None,
            snapshot_id: None,
            parent: None,
            no_parent: None,
            reused: false,
            blocks_sent: 0,
            bytes_sent: 0,
            blocks_resumed: 0,
            blocks_verified: 0,
            changes: 0,
            copies: BTreeMap::new(),
        }
    }

    fn found(&self) -> Result<Option<MachineImage>, AmiError> {
        register::find(self.aws, &self.subject.digest.to_string())
    }

    /// Creates the AMI.
    fn make(&self, report: &mut AmiReport) -> Result<MachineImage, AmiError> {
        let encrypted = self.check_account()?;
        let Subject { digest, blocks, .. } = &self.subject;
        let mut journal = Journal::open(self.request.store, digest, &self.account, self.aws.region())?;
        // Another process may have created it while this one waited for the journal.
        if let Some(image) = self.found()? {
            report.reused = true;
            return Ok(image);
        }
        let verify = |snapshot: &str, made| verify::verify(self.aws, self.options, &self.subject, snapshot, made);
        let snapshot = match self.completed()? {
            Some(snapshot) => {
                report.blocks_verified = verify(&snapshot, None)?;
                snapshot
            }
            None => {
                let (parent, list) = self.choose_parent(encrypted, report)?;
                let parent = parent.as_ref();
                let (snapshot, transferred) = self.upload(&mut journal, parent, &list, encrypted)?;
                report.count(transferred);
                self.emit(format!("{snapshot}: {}", upload::summary(transferred)));
                register::until_completed(self.aws, &snapshot, AVAILABILITY_TIMEOUT)?;
                report.blocks_verified = verify(&snapshot, Some(&Made { parent, sent: &list }))?;
                snapshot
            }
        };
        block_list::save(self.request.store, digest, blocks, self.subject.boot_mode.name(), self.options.kms_key)?;
        let image = register::register(self.aws, self.options, &self.subject, &snapshot)?;
        journal.remove()?;
        Ok(image)
    }

    fn upload(
        &self,
        journal: &mut Journal,
        parent: Option<&Parent>,
        list: &Sent,
        encrypted: bool,
    ) -> Result<(String, Transferred), AmiError> {
        let (aws, source, options, subject) = (self.aws, self.request.source, self.options, &self.subject);
        let bar = self.request.progress.bar("sending", 0);
        let done = Upload { aws, source, options, subject, parent, sent: list, encrypted }.run(journal, &bar);
        bar.finish_and_clear();
        done
    }

    /// Checks the preconditions of later steps before the upload; returns whether the snapshot will be encrypted.
    fn check_account(&self) -> Result<bool, AmiError> {
        register::check_name(self.aws, &self.subject.name, &self.subject)?;
        let encrypted = self.options.kms_key.is_some() || self.aws.encryption_by_default()?;
        Ok(encrypted)
    }

    /// Checks early whether the AMI can be public in all regions, if requested.
    fn check_public(&self) -> Result<(), AmiError> {
        if !self.options.permissions.contains(&LaunchPermission::Group) {
            return Ok(());
        }
        let digest = self.subject.digest.to_string();
        let others = self.options.copies.iter().map(|region| self.aws.in_region(region));
        for aws in std::iter::once(self.aws.clone()).chain(others) {
            let refused = |reason| AmiError::Public { region: aws.region().to_owned(), reason };
            if register::find(&aws, &digest)?.is_some_and(|image| image.public) {
                continue;
            }
            if self.options.kms_key.is_some() || aws.encryption_by_default()? {
                return Err(refused("the snapshot is encrypted"));
            }
            if aws.block_public_access()? == "block-new-sharing" {
                return Err(refused("block public access is on"));
            }
        }
        Ok(())
    }

    /// Checks the permission to register images. EC2 checks it first, before the incomplete request.
    fn may_register(&self) -> Result<(), AmiError> {
        match self.aws.dry_run("RegisterImage", &[("Name", &self.subject.name)]) {
            Err(error) if error.is_denied() || error.is_expired() => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// A complete snapshot of the disk.
    fn completed(&self) -> Result<Option<String>, AmiError> {
        let digest = self.subject.digest.to_string();
        let filters = [(&*format!("tag:{DISK_DIGEST}"), &[digest.as_str()][..]), ("status", &["completed"])];
        let mut snapshots = self.aws.snapshots(&filters)?;
        snapshots.sort_by(|a, b| (&a.started, &a.id).cmp(&(&b.started, &b.id)));
        Ok(snapshots.into_iter().next().map(|snapshot| snapshot.id))
    }

    /// Chooses the parent and the blocks to upload in addition.
    fn choose_parent(&self, encrypted: bool, report: &mut AmiReport) -> Result<(Option<Parent>, Sent), AmiError> {
        let search = Search {
            aws: self.aws,
            account: &self.account,
            store: self.request.store,
            choice: self.options.parent,
            image: self.options.parent_image,
            kms_key: self.options.kms_key,
            encrypted,
            threads: self.request.threads,
            progress: self.request.progress,
        };
        let parent = match search.find(&self.subject)? {
            Ok(parent) => Some(parent),
            Err(reason) => {
                self.emit(format!("uploading all blocks, as there is no parent: {reason}"));
                report.no_parent = Some(reason);
                None
            }
        };
        report.parent = parent.as_ref().map(|parent| parent.id.clone());
        let list = sent(&self.subject, parent.as_ref());
        Ok((parent, list))
    }

    /// Copies, tags, permissions and deprecation; parameters last.
    fn distribute(&self, source: RegionalImage, report: &mut AmiReport) -> Result<(), AmiError> {
        report.set_image(&source.image);
        report.name.clone_from(&source.image.name);
        let (copies, made) = distribution::copies(&source, self.options, &self.subject)?;
        report.changes += made;
        report.copies = distribution::by_region(&copies);
        for placed in copies.iter().chain([&source]) {
            report.changes += distribution::apply_attributes(placed, self.options, &self.subject)?;
        }
        for placed in copies.iter().chain([&source]) {
            report.changes += distribution::parameters(placed, self.options.parameters)?;
        }
        Ok(())
    }

    fn emit(&self, text: String) {
        self.request.progress.emit(Event::Remark { text });
    }
}

impl AmiReport {
    fn count(&mut self, transferred: Transferred) {
        self.blocks_sent = transferred.blocks;
        self.bytes_sent = transferred.blocks * BLOCK;
        self.blocks_resumed = transferred.resumed;
    }

    fn set_image(&mut self, image: &MachineImage) {
        self.image_id = Some(image.id.clone());
        self.snapshot_id = image.snapshots.first().cloned();
    }

    /// The estimated cost of a plan.
    fn estimate(&self) -> String {
        #[expect(clippy::cast_precision_loss, reason = "an estimate")]
        let price = self.blocks_sent as f64 / 1000.0 * USD_PER_1000_PUTS;
        let blocks = counted(self.blocks_sent, "block");
        format!("would upload {blocks}, {}, for about {price:.2} USD by list price", human_bytes(self.bytes_sent))
    }
}

impl PublishReport for AmiReport {
    fn summary(&self) -> String {
        match &self.image_id {
            Some(id) if self.reused => format!("{id} exists; {}", counted(self.changes as u64, "change")),
            Some(_) => format!("{}, {} verified", self.disk_digest, counted(self.blocks_verified, "block")),
            None => self.estimate(),
        }
    }

    fn images(&self) -> Vec<(&str, &str)> {
        let first = self.image_id.iter().map(|id| (&self.region, id));
        first.chain(&self.copies).map(|(region, id)| (region.as_str(), id.as_str())).collect()
    }
}
