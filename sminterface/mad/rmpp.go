package mad

import (
	"encoding/binary"
	"fmt"
)

// RMPPType is the kind of a segment of the reliable multi-packet protocol (IBA
// 13.6.2.1); 0 means that it is not in use.
type RMPPType uint8

// The kinds of segments.
const (
	RMPPData  RMPPType = 1
	RMPPAck   RMPPType = 2
	RMPPStop  RMPPType = 3
	RMPPAbort RMPPType = 4
)

// RMPP is the header of the reliable multi-packet protocol, at offset 24 of a
// MAD.
type RMPP struct {
	Version  uint8 // 1
	Type     RMPPType
	RespTime uint8 // 5 bits; 31 for none
	Flags    uint8 // RMPPActive, RMPPFirst, RMPPLast
	Status   uint8 // of a stop or abort
	// Segment counts from 1. PayloadLength is that of all segments in the
	// first, 0 when not known, and that of the segment in the last; in an
	// acknowledgement it is the last segment that may come (NewWindowLast).
	Segment       uint32
	PayloadLength uint32
}

// The flags of RMPP.
const (
	RMPPActive = 1 << 0
	RMPPFirst  = 1 << 1
	RMPPLast   = 1 << 2
)

// The reasons to stop that are in use here.
const (
	rmppBadSegment  = 120 // a first that is not 1, or the other way round
	rmppBadLength   = 119 // the last segment and the length do not fit
	rmppBadType     = 121
	rmppTooBig      = 123 // a segment beyond the window
	rmppUnsupported = 125 // version
)

// Marshal writes the header to b, which has RMPPHeaderSize bytes or more.
func (r *RMPP) Marshal(b []byte) {
	_ = b[RMPPHeaderSize-1]
	b[0], b[1], b[2], b[3] = r.Version, byte(r.Type), r.RespTime<<3|r.Flags&7, r.Status
	binary.BigEndian.PutUint32(b[4:], r.Segment)
	binary.BigEndian.PutUint32(b[8:], r.PayloadLength)
}

// Unmarshal reads the header from RMPPHeaderSize bytes or more.
func (r *RMPP) Unmarshal(b []byte) {
	_ = b[RMPPHeaderSize-1]
	*r = RMPP{
		Version: b[0], Type: RMPPType(b[1]), RespTime: b[2] >> 3, Flags: b[2] & 7, Status: b[3],
		Segment: binary.BigEndian.Uint32(b[4:]), PayloadLength: binary.BigEndian.Uint32(b[8:]),
	}
}

// rmppWindow is how many segments may be on their way: what the kernel allows.
const rmppWindow = 64

// MaxRMPP is the longest answer that a Reassembly takes, in bytes of payload.
// A subnet of 49,151 ports has 9 MB of NodeRecords.
const MaxRMPP = 64 << 20

// RMPPError says why a transfer was given up.
type RMPPError struct {
	Type   RMPPType // RMPPStop, RMPPAbort
	Status uint8    // IBA 13.6.2.1.2
	Peer   bool     // the other side gave it up
}

func (e *RMPPError) Error() string {
	who := "given up"
	if e.Peer {
		who = "the other side gave up"
	}
	return fmt.Sprintf("multi-packet answer: %s, RMPP status %d", who, e.Status)
}

// Reassembly receives the segments of one answer of subnet administration and
// makes one MAD of them (IBA 13.6.6.2): the kernel does so for programs that
// use umad, but not for those that use ibsim. The zero value is ready.
type Reassembly struct {
	next   uint32 // segment that comes next, less 1
	window uint32 // last segment that was allowed
	mad    []byte
	done   bool
}

// Segment takes a MAD with RMPP active. reply, if not nil, is to be sent back,
// for an acknowledgement or to give up. whole is not nil when the answer is
// complete: the first segment with the payloads of all in place of its own;
// the Reassembly must not be used after that, except for segments that come
// twice. An error ends the transfer.
//
// A segment out of order is dropped and the last one in order acknowledged
// again, so that the sender goes back to it.
func (r *Reassembly) Segment(b []byte) (reply, whole []byte, err error) {
	var a Adm
	if err := a.Unmarshal(b); err != nil {
		return nil, nil, err
	}
	if len(b) < Size {
		return nil, nil, fmt.Errorf("%w: %d bytes, a segment has %d", ErrShort, len(b), Size)
	}
	h := a.RMPP
	fail := func(status uint8) ([]byte, []byte, error) {
		return r.control(&a, RMPPAbort, status), nil, &RMPPError{Type: RMPPAbort, Status: status}
	}
	switch {
	case h.Version != 1:
		return fail(rmppUnsupported)
	case h.Type == RMPPStop || h.Type == RMPPAbort:
		return nil, nil, &RMPPError{Type: h.Type, Status: h.Status, Peer: true}
	case h.Type == RMPPAck: // of what we have sent: requests are never long
		return nil, nil, nil
	case h.Type != RMPPData:
		return fail(rmppBadType)
	case (h.Segment == 1) != (h.Flags&RMPPFirst != 0) || h.Segment == 0:
		return fail(rmppBadSegment)
	}
	if r.window == 0 {
		r.window = 1
	}
	if r.done || h.Segment != r.next+1 {
		if h.Segment > r.window {
			return fail(rmppTooBig)
		}
		return r.control(&a, RMPPAck, 0), nil, nil
	}
	// The SA header, of which the first segment's counts, is a part of every
	// payload (IBA 15.2.1.2).
	const saHeader = AdmHeaderSize - HeaderSize - RMPPHeaderSize
	data := b[AdmHeaderSize:Size]
	last := h.Flags&RMPPLast != 0
	if last {
		n := int(h.PayloadLength)
		if h.PayloadLength > AdmDataSize+saHeader || n < saHeader {
			return fail(rmppBadLength)
		}
		data = data[:n-saHeader]
	}
	if h.Segment == 1 {
		r.mad = append(r.mad[:0], b[:AdmHeaderSize]...)
	}
	if len(r.mad)+len(data) > MaxRMPP {
		return fail(rmppBadLength)
	}
	r.mad = append(r.mad, data...)
	r.next = h.Segment
	if last {
		r.done = true
		return r.control(&a, RMPPAck, 0), r.mad, nil
	}
	if r.next == r.window {
		r.window += rmppWindow
		return r.control(&a, RMPPAck, 0), nil, nil
	}
	return nil, nil, nil
}

// control makes an acknowledgement of all segments up to the last one in order, or an abort: a MAD with the method of the
// request's answer less the response bit.
func (r *Reassembly) control(a *Adm, kind RMPPType, status uint8) []byte {
	h := a.Header
	h.Method &^= Response
	out := Adm{Header: h, RMPP: RMPP{Version: 1, Type: kind, Flags: RMPPActive, Status: status, RespTime: 31}}
	if kind == RMPPAck {
		out.RMPP.Segment, out.RMPP.PayloadLength = r.next, r.window
	}
	return out.Append(make([]byte, 0, Size))
}
