"""Is the kernel's list of mounts read, whatever stands in it?"""

from broadgauge.agent.hardware.mounts import Mount, read_mounts

LINES = (
    "1 0 254:0 / / rw shared:1 - ext4 /dev/vda rw,errors=remount-ro",
    "3 1 0:31 / /a\\040b rw shared:2 master:1 - fuse.rclone bucket: rw",
    "4 1 0:32 / /dev/shm rw - tmpfs tmpfs rw,size=65536k",
    "5 1 0:33 / /cut rw",
    "",
)


def test_fields_are_told_and_lines_that_are_cut_left_out() -> None:
    assert list(read_mounts(LINES)) == [
        Mount(place="/", kind="ext4", source="/dev/vda", options="rw,errors=remount-ro"),
        Mount(place="/a b", kind="fuse.rclone", source="bucket:", options="rw"),
        Mount(place="/dev/shm", kind="tmpfs", source="tmpfs", options="rw,size=65536k"),
    ]
