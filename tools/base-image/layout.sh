# The identities of the base image, as fixed as its layout: sourced by the other scripts, for the architecture in $arch.
disk_bytes=3221225472
disk_guid=0B2A6F4C-6D0E-4E5B-9C1D-2F6A7C1E9A13
root_guid=4B9E6F0C-57B8-4D53-8B7C-0A2C4A7F3E11
boot_guid=4B9E6F0C-57B8-4D53-8B7C-0A2C4A7F3E14
esp_guid=4B9E6F0C-57B8-4D53-8B7C-0A2C4A7F3E15
case $arch in
    amd64) root_type=4F68BCE3-E8CD-4DB1-96E7-FBCAF984B709 efi=x64 grub=x86_64-efi console=ttyS0,115200 ;;
    arm64) root_type=B921B045-1DF0-41C3-AF44-4C6F280D3FAE efi=aa64 grub=arm64-efi console=ttyAMA0 ;;
    *) echo "no layout for architecture $arch" >&2; exit 2 ;;
esac
root_uuid=6b5d9a1e-20f3-4f6e-8d1b-7c9e0b3a5d42
esp_serial=5D42-13A1
# Sectors of 512 bytes, as on the official image.
boot_start=2048 boot_sectors=6144
esp_start=8192 esp_sectors=253952
root_start=262144
