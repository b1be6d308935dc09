package natskv

import "golang.org/x/sys/unix"

// networkFileSystem names the file system of path when it is one on which locks
// and syncs are not to be trusted, else "".
func networkFileSystem(path string) string {
	var fs unix.Statfs_t
	if unix.Statfs(path, &fs) != nil {
		return ""
	}
	switch uint32(fs.Type) { //nolint:gosec // magic numbers have 32 bits, whatever the field's type
	case unix.NFS_SUPER_MAGIC:
		return "NFS"
	case unix.SMB_SUPER_MAGIC, unix.CIFS_SUPER_MAGIC, unix.SMB2_SUPER_MAGIC:
		return "SMB"
	case unix.AFS_SUPER_MAGIC, unix.AFS_FS_MAGIC:
		return "AFS"
	case unix.CODA_SUPER_MAGIC:
		return "Coda"
	case unix.CEPH_SUPER_MAGIC:
		return "Ceph"
	}
	return ""
}
