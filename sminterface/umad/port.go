package umad

import (
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"syscall"
	"time"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/sminterface/mad"
)

// agents are the management classes that a Port registers.
var agents = [...]agent{
	{class: uint8(mad.SubnLID), version: mad.SMPVersion, qpn: 0},
	{class: uint8(mad.SubnDirected), version: mad.SMPVersion, qpn: 0},
	{class: uint8(mad.SubnAdm), version: mad.AdmVersion, qpn: 1, rmpp: 1},
}

// Port sends MADs through a port of this machine, as a subnet.Transport does.
//
// Send and Close are safe for concurrent use. Receive is for one goroutine.
type Port struct {
	dev Device
	ids [len(agents)]uint32 // of the kernel's agents
	buf []byte

	closing sync.Once
	closed  error
}

// Open opens the device of a port that List lists.
func Open(info PortInfo) (*Port, error) {
	if info.Umad == "" {
		return nil, openError(info.String(), fmt.Errorf("it has no umad device: %w", fs.ErrNotExist))
	}
	dev, err := openDevice(info.Umad)
	if err != nil {
		return nil, err
	}
	p, err := New(dev)
	if err != nil {
		return nil, openError(info.Umad, errors.Join(err, dev.Close()))
	}
	return p, nil
}

// New makes a Port of an open device, which the Port owns from
// now on, unless there is an error.
func New(dev Device) (*Port, error) {
	p := &Port{dev: dev, buf: make([]byte, HeaderSize+mad.Size)}
	// This comes first, since it changes the length of the header.
	if err := dev.Ioctl(ioctlEnablePKey, nil); err != nil {
		return nil, fmt.Errorf("IB_USER_MAD_ENABLE_PKEY: %w", err)
	}
	for i, a := range agents {
		id, err := register(dev, a)
		if err != nil {
			for _, id := range p.ids[:i] {
				err = errors.Join(err, unregister(dev, id))
			}
			return nil, fmt.Errorf("registering %s: %w", mad.Class(a.class), err)
		}
		p.ids[i] = id
	}
	return p, nil
}

// Send gives a MAD to the kernel, which matches answers by the
// lower 32 bits of the transaction ID, and sets the other bits.
func (p *Port) Send(m *mad.Packet) error {
	if len(m.Data) < mad.Size {
		return fmt.Errorf("a MAD of %d bytes, want %d", len(m.Data), mad.Size)
	}
	h := header{qpn: m.QP, qkey: m.QKey, lid: uint16(m.LID), sl: uint8(m.SL)}
	found := false
	for i, a := range agents {
		if a.class == m.Data[1] {
			h.agent, found = p.ids[i], true
		}
	}
	if !found {
		return fmt.Errorf("%s, want that of SMPs or of subnet administration", mad.Class(m.Data[1]))
	}
	if m.Timeout > 0 {
		ms := (m.Timeout + time.Millisecond - 1) / time.Millisecond
		h.timeoutMS = uint32(min(ms, 1<<31-1))
		h.retries = uint32(max(0, m.Retries))
	}
	b := make([]byte, HeaderSize+len(m.Data))
	h.marshal(b)
	copy(b[HeaderSize:], m.Data)
	for {
		n, err := p.dev.Write(b)
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case err != nil:
			return fmt.Errorf("umad: %w", err)
		case n != len(b):
			return fmt.Errorf("umad: the kernel took %d of %d bytes", n, len(b))
		}
		return nil
	}
}

// Receive waits for the next MAD that comes in or stays without an answer, and puts
// it into m. m.Data is valid until the next call; for a MAD without an answer it is
// only the header. Errors: fs.ErrClosed after Close, and those of the device.
func (p *Port) Receive(m *mad.Packet) error {
	for {
		n, err := p.dev.Read(p.buf)
		switch {
		case errors.Is(err, syscall.ENOSPC):
			// The answer has several packets. The header has its length.
			var h header
			h.unmarshal(p.buf)
			if h.length <= uint32(len(p.buf)) || h.length > HeaderSize+mad.MaxAnswer {
				return fmt.Errorf("umad: a message of %d bytes, want more than %d and at most %d", h.length, len(p.buf), HeaderSize+mad.MaxAnswer)
			}
			p.buf = make([]byte, h.length)
			continue
		case errors.Is(err, syscall.EINTR), errors.Is(err, syscall.EAGAIN):
			continue
		case err != nil:
			return err
		case n < HeaderSize+mad.HeaderSize:
			continue // not a MAD
		}
		var h header
		h.unmarshal(p.buf)
		*m = mad.Packet{
			LID: fabric.LID(h.lid), QP: h.qpn, QKey: h.qkey, SL: fabric.SL(h.sl),
			TimedOut: h.status != 0, // ETIMEDOUT, or another reason why it was not sent
			Data:     p.buf[HeaderSize:n],
		}
		return nil
	}
}

// Close unregisters the agents and closes the device. It may be called more than once.
func (p *Port) Close() error {
	p.closing.Do(func() {
		var err error
		for _, id := range p.ids {
			err = errors.Join(err, unregister(p.dev, id))
		}
		p.closed = errors.Join(err, p.dev.Close())
	})
	return p.closed
}
