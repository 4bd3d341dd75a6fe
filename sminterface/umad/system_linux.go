package umad

import (
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"unsafe"
)

// List lists the ports of the machine's RDMA devices, by device and number,
// from /sys. Errors: ErrNoDevices, and those of reading /sys.
func List() ([]PortInfo, error) { return system{os.DirFS("/sys")}.list() }

// file is a device of the kernel.
type file struct{ *os.File }

// openDevice opens /dev/infiniband/umadN. The file does not block, so that
// Close ends a Read.
func openDevice(name string) (Device, error) {
	path := filepath.Join("/dev/infiniband", name)
	f, err := os.OpenFile(path, os.O_RDWR|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, openError(path, err.(*os.PathError).Err)
	}
	return file{f}, nil
}

// Ioctl is ioctl(2).
func (f file) Ioctl(request uint32, arg []byte) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var errno syscall.Errno
	err = raw.Control(func(fd uintptr) {
		_, _, errno = syscall.Syscall(syscall.SYS_IOCTL, fd, uintptr(request), uintptr(unsafe.Pointer(unsafe.SliceData(arg))))
	})
	runtime.KeepAlive(arg)
	if err != nil {
		return err
	}
	if errno != 0 {
		return errno
	}
	return nil
}
