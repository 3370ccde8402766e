//! The structures of a qcow2 image, with their names in the specification.

use std::fmt;

/// A structure or header field of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Qcow2Structure {
    Header,
    /// `header_length`.
    HeaderLength,
    /// `cluster_bits`.
    ClusterBits,
    /// `size`.
    Size,
    /// `crypt_method`.
    CryptMethod,
    /// `l1_size`.
    L1Size,
    /// `l1_table_offset`.
    L1TableOffset,
    /// `compression_type`.
    CompressionType,
    L1Table,
    L1Entry,
    L2Table,
    L2Entry,
    /// An uncompressed cluster.
    DataCluster,
    CompressedCluster,
}

impl fmt::Display for Qcow2Structure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Header => "header",
            Self::HeaderLength => "header_length",
            Self::ClusterBits => "cluster_bits",
            Self::Size => "size",
            Self::CryptMethod => "crypt_method",
            Self::L1Size => "l1_size",
            Self::L1TableOffset => "l1_table_offset",
            Self::CompressionType => "compression_type",
            Self::L1Table => "L1 table",
            Self::L1Entry => "L1 entry",
            Self::L2Table => "L2 table",
            Self::L2Entry => "L2 entry",
            Self::DataCluster => "data cluster",
            Self::CompressedCluster => "compressed cluster",
        })
    }
}
