//! An index of the clusters of a qcow2 file by content ID, so that a later file can copy them without reading and
//! compressing the same bytes again.
//!
//! Serialized, an index consists of its entries, sorted by name, little-endian: name (16 bytes), offset in the file
//! (8), length (4), BLAKE3 of the stored data (32). Length 0 is a cluster of zeros, which is not stored.

use super::qcow2::CLUSTER;

/// First half of a cluster's content ID: accidental collisions are impossible in practice, and deliberate ones gain
/// nothing.
pub type ClusterName = [u8; 16];

/// Bytes of an entry.
const ENTRY: usize = 16 + 8 + 4 + 32;

/// BLAKE3 of the stored data of a cluster: as strong as SHA-256, which would increase the time of a bake by a quarter.
pub type ClusterSum = [u8; 32];

/// The location of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClusterLocation {
    /// Offset in the file.
    pub at: u64,
    /// Stored bytes: 0 for zeros, the cluster size if it is not compressed.
    pub len: u32,
    /// BLAKE3 of these bytes: if the file has changed, they are not reused.
    pub sum: ClusterSum,
}

/// The clusters of a qcow2 file with their locations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Clusters(Vec<(ClusterName, ClusterLocation)>);

impl Clusters {
    /// The location of a cluster by name.
    pub fn find(&self, name: &ClusterName) -> Option<ClusterLocation> {
        let found = self.0.binary_search_by_key(&name, |(name, _)| name).ok()?;
        self.0.get(found).map(|(_, place)| *place)
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The index as bytes, an entry at a time.
    pub fn entries(&self) -> impl Iterator<Item = [u8; ENTRY]> {
        self.0.iter().map(|(name, place)| {
            let mut entry = [0; ENTRY];
            entry[..16].copy_from_slice(name);
            entry[16..24].copy_from_slice(&place.at.to_le_bytes());
            entry[24..28].copy_from_slice(&place.len.to_le_bytes());
            entry[28..].copy_from_slice(&place.sum);
            entry
        })
    }

    /// Parses the output of [`Self::entries`]; `None` if it is invalid.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let (entries, rest) = bytes.as_chunks::<ENTRY>();
        let clusters: Vec<_> = entries.iter().map(entry).collect::<Option<_>>()?;
        let sorted = clusters.is_sorted_by(|(a, _), (b, _)| a < b);
        (sorted && rest.is_empty()).then_some(Self(clusters))
    }

    /// The sums of stored data, by location.
    pub fn sums(&self) -> ClusterSums {
        let mut sums: Vec<_> = self.0.iter().filter(|(_, place)| place.len != 0).map(|(_, place)| *place).collect();
        sums.sort_unstable();
        ClusterSums(sums)
    }

    /// Adds a cluster; [`Self::sort`] must be called before a lookup.
    pub(super) fn push(&mut self, name: ClusterName, place: ClusterLocation) {
        self.0.push((name, place));
    }

    pub(super) fn sort(&mut self) {
        self.0.sort_unstable();
        self.0.dedup_by_key(|(name, _)| *name);
        self.0.shrink_to_fit();
    }
}

/// The stored data of a qcow2 file by sum: equal sums are equal bytes.
#[derive(Clone, Debug, Default)]
pub struct ClusterSums(Vec<ClusterLocation>);

impl ClusterSums {
    /// Length and sum of the stored data at `at`.
    pub(crate) fn find(&self, at: u64) -> Option<(u32, ClusterSum)> {
        let found = self.0.binary_search_by_key(&at, |place| place.at).ok()?;
        self.0.get(found).map(|place| (place.len, place.sum))
    }
}

fn entry(bytes: &[u8; ENTRY]) -> Option<(ClusterName, ClusterLocation)> {
    let (name, rest) = bytes.split_first_chunk()?;
    let (at, rest) = rest.split_first_chunk()?;
    let (len, rest) = rest.split_first_chunk()?;
    let place =
        ClusterLocation { at: u64::from_le_bytes(*at), len: u32::from_le_bytes(*len), sum: *rest.first_chunk()? };
    let len = usize::try_from(place.len).ok()?;
    (len <= CLUSTER).then_some((*name, place))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_is_read_back_and_damage_is_refused() {
        let place = |at, len| ClusterLocation { at, len, sum: [7; 32] };
        let mut clusters = Clusters::default();
        for (name, place) in
            [(9, place(5 << 16, 300)), (3, place(1 << 40, 1 << 16)), (5, place(0, 0)), (9, place(6 << 16, 300))]
        {
            clusters.push([name; 16], place);
        }
        clusters.sort();
        assert_eq!(clusters.len(), 3, "of one name one is kept");
        assert_eq!(clusters.find(&[9; 16]), Some(place(5 << 16, 300)));
        assert_eq!(clusters.find(&[4; 16]), None);
        let bytes: Vec<u8> = clusters.entries().flatten().collect();
        assert_eq!(Clusters::parse(&bytes).as_ref(), Some(&clusters));
        assert_eq!(Clusters::parse(&[]), Some(Clusters::default()));
        assert_eq!(Clusters::parse(&bytes[1..]), None);
        assert_eq!(Clusters::parse(&[&bytes[ENTRY..], &bytes[..ENTRY]].concat()), None, "not sorted");
        assert_eq!(Clusters::parse(&[&bytes[..ENTRY], &bytes[..ENTRY]].concat()), None, "twice the same");
        let mut long = bytes.clone();
        long[24..28].copy_from_slice(&65_537u32.to_le_bytes());
        assert_eq!(Clusters::parse(&long), None, "no cluster is stored in as many bytes");
    }
}
