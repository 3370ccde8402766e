//! Limits of a run, and the resources used so far: they stop every script that loops.

use crate::error::ErrorKind;

/// Bounds of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Commands that are run, loops' rounds included.
    pub steps: u64,
    /// Bytes that expansions, patterns and commands go through, all together.
    pub work_bytes: u64,
    /// Functions, sourced files and scripts that call each other.
    pub calls: u32,
    /// Nested commands, those of functions that call each other included: at most [`Limits::LEVELS`], for each takes stack.
    pub levels: u32,
    /// Longest script, value or output.
    pub size_bytes: usize,
    /// Largest file whose content is read or written. Files that are only copied, moved or looked up may be larger.
    pub file_bytes: usize,
    /// All variables together.
    pub variables_bytes: usize,
    /// Fields of one command.
    pub fields: usize,
}

impl Default for Limits {
    /// A real maintainer script runs some hundred commands and goes through some hundred kilobytes.
    fn default() -> Self {
        Self {
            steps: 1_000_000,
            work_bytes: 256 << 20,
            calls: 200,
            levels: Self::LEVELS,
            size_bytes: 16 << 20,
            file_bytes: 64 << 20,
            variables_bytes: 4 << 20,
            fields: 100_000,
        }
    }
}

impl Limits {
    /// So many nested commands fit into the 2 MiB of stack that threads have, as a test shows.
    pub const LEVELS: u32 = 600;
}

/// What is left of the bounds.
#[derive(Debug)]
pub(crate) struct Budget {
    pub(crate) limits: Limits,
    pub(crate) steps: u64,
    work: u64,
    pub(crate) levels: u32,
    pub(crate) calls: u32,
}

impl Budget {
    pub(crate) fn new(limits: Limits) -> Self {
        Self { limits, steps: 0, work: 0, levels: 0, calls: 0 }
    }

    /// One more command.
    pub(crate) fn step(&mut self) -> Result<(), ErrorKind> {
        self.steps += 1;
        if self.steps > self.limits.steps {
            return Err(ErrorKind::Limit { what: "steps", limit: self.limits.steps });
        }
        Ok(())
    }

    /// So many bytes more that something goes through.
    pub(crate) fn work(&mut self, bytes: usize) -> Result<(), ErrorKind> {
        self.work = self.work.saturating_add(bytes as u64);
        if self.work > self.limits.work_bytes {
            return Err(ErrorKind::Limit { what: "bytes of work", limit: self.limits.work_bytes });
        }
        Ok(())
    }

    /// A file of that length, whose content is read or written.
    pub(crate) fn file(&mut self, bytes: usize) -> Result<(), ErrorKind> {
        if bytes > self.limits.file_bytes {
            let limit = self.limits.file_bytes as u64;
            return Err(ErrorKind::Limit { what: "bytes of one file", limit });
        }
        self.work(bytes)
    }

    /// A value or output of that length.
    pub(crate) fn size(&mut self, bytes: usize) -> Result<(), ErrorKind> {
        if bytes > self.limits.size_bytes {
            let limit = self.limits.size_bytes as u64;
            return Err(ErrorKind::Limit { what: "bytes of one value or output", limit });
        }
        self.work(bytes)
    }

    pub(crate) fn enter_level(&mut self) -> Result<(), ErrorKind> {
        self.levels += 1;
        let limit = self.limits.levels.min(Limits::LEVELS);
        if self.levels > limit {
            return Err(ErrorKind::Limit { what: "nested commands", limit: limit.into() });
        }
        Ok(())
    }

    pub(crate) fn enter_call(&mut self) -> Result<(), ErrorKind> {
        self.calls += 1;
        if self.calls > self.limits.calls {
            return Err(ErrorKind::Limit { what: "nested calls", limit: self.limits.calls.into() });
        }
        Ok(())
    }
}
