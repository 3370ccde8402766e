//! vmbake turns a Debian cloud image and a pinned manifest into a golden disk image.
