// Package umad speaks to a real InfiniBand port through the
// kernel's user MAD device, /dev/infiniband/umadN, without C: it
// does what libibumad does. It makes no promise to other modules.
//
// The kernel's side is in Linux: drivers/infiniband/core/user_mad.c
// and include/uapi/rdma/ib_user_mad.h. The kernel repeats requests
// that are not answered in time, returns those that never are, and
// joins the packets of long answers.
package umad

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"runtime"
)

// Device is an open /dev/infiniband/umadN, or something that behaves like it.
//
// Read waits for a message and returns all of it. If b is too small, it returns
// the part that fits and syscall.ENOSPC, and the next Read returns the same
// message. Write takes one message. Ioctl reads its argument from arg, and
// writes the kernel's answer there. Close makes Read return fs.ErrClosed.
type Device interface {
	Read(b []byte) (int, error)
	Write(b []byte) (int, error)
	Ioctl(request uint32, arg []byte) error
	Close() error
}

// The requests of ioctl, of type 0x1b.
var (
	ioctlUnregister = ioctlNumber(false, true, 2, 4)
	ioctlEnablePKey = ioctlNumber(false, false, 3, 0)
	ioctlRegister2  = ioctlNumber(true, true, 4, sizeRegister2)
)

// ioctlNumber returns the number that _IOC makes, of
// asm-generic/ioctl.h or of an architecture with its own.
func ioctlNumber(read, write bool, number, size uint32) uint32 {
	const kind = 0x1b
	neither, writing, reading, shift := uint32(0), uint32(1), uint32(2), 30
	switch runtime.GOARCH {
	case "ppc64", "ppc64le", "mips", "mipsle", "mips64", "mips64le":
		neither, writing, reading, shift = 1, 4, 2, 29
	}
	dir := neither
	if read || write {
		dir = 0
	}
	if write {
		dir |= writing
	}
	if read {
		dir |= reading
	}
	return dir<<shift | size<<16 | kind<<8 | number
}

// The structs of ib_user_mad.h, in bytes. All of them are in the byte order of
// the machine, except where a comment says so.
const (
	sizeRegister2 = 40 // ib_user_mad_reg_req2
	// HeaderSize is the length of ib_user_mad_hdr, which precedes each MAD.
	// After IB_USER_MAD_ENABLE_PKEY it has a P_Key index.
	HeaderSize = 64
)

// header is ib_user_mad_hdr.
type header struct {
	agent, status, timeoutMS, retries uint32
	length                            uint32 // of a received message, header included
	qpn, qkey                         uint32 // network order
	lid                               uint16 // network order
	sl, pathBits                      uint8
	pkeyIndex                         uint16
}

func (h *header) marshal(b []byte) {
	clear(b[:HeaderSize])
	n := binary.NativeEndian
	n.PutUint32(b[0:], h.agent)
	n.PutUint32(b[4:], h.status)
	n.PutUint32(b[8:], h.timeoutMS)
	n.PutUint32(b[12:], h.retries)
	n.PutUint32(b[16:], h.length)
	binary.BigEndian.PutUint32(b[20:], h.qpn)
	binary.BigEndian.PutUint32(b[24:], h.qkey)
	binary.BigEndian.PutUint16(b[28:], h.lid)
	b[30], b[31] = h.sl, h.pathBits
	n.PutUint16(b[56:], h.pkeyIndex)
}

func (h *header) unmarshal(b []byte) {
	n := binary.NativeEndian
	*h = header{
		agent: n.Uint32(b[0:]), status: n.Uint32(b[4:]), timeoutMS: n.Uint32(b[8:]), retries: n.Uint32(b[12:]),
		length: n.Uint32(b[16:]),
		qpn:    binary.BigEndian.Uint32(b[20:]), qkey: binary.BigEndian.Uint32(b[24:]), lid: binary.BigEndian.Uint16(b[28:]),
		sl: b[30], pathBits: b[31], pkeyIndex: n.Uint16(b[56:]),
	}
}

// agent is a registration of a management class.
type agent struct {
	class, version, rmpp uint8
	qpn                  uint8
}

// register registers an agent, which gets answers but no requests
// from others, and returns its number. Kernels have this ioctl from
// version 3.18 on.
func register(d Device, a agent) (uint32, error) {
	var b [sizeRegister2]byte
	n := binary.NativeEndian
	n.PutUint32(b[4:], uint32(a.qpn))
	b[8], b[9] = a.class, a.version
	b[36] = a.rmpp
	err := d.Ioctl(ioctlRegister2, b[:])
	return n.Uint32(b[0:]), err
}

// unregister removes an agent.
func unregister(d Device, id uint32) error {
	var b [4]byte
	binary.NativeEndian.PutUint32(b[:], id)
	return d.Ioctl(ioctlUnregister, b[:])
}

// openError returns an error about a device that cannot be used, with a hint.
func openError(device string, err error) error {
	help := ""
	switch {
	case errors.Is(err, fs.ErrPermission):
		help = ": only root may use it, unless a rule of udev says otherwise"
	case errors.Is(err, fs.ErrNotExist):
		help = ": is the kernel module ib_umad loaded?"
	}
	return fmt.Errorf("%s: %w%s", device, err, help)
}
