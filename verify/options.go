package verify

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/ibweave/ibweave/internal/par"
)

// Options are the choices of Check.
type Options struct {
	// Copying is how switches copy a multicast packet to several ports.
	Copying Copying
	// Complete means that the fabric has all ports. Otherwise LIDs with
	// entries but without a port, which the topology may lack, leave rules
	// undecided.
	Complete bool
	// Buffer is the room of switches for packets; the zero value means unknown.
	Buffer Buffer
	// Workers is the number of goroutines; 0 is one for each CPU. The result
	// does not depend on it.
	Workers int
	// Witnesses is the most credit loops that are shown; 0 stands for
	// DefaultWitnesses. All are counted.
	Witnesses int
	// Findings is the most findings for each rule; 0 stands for
	// DefaultFindings. One further finding tells how many are left out.
	Findings int
	// Progress, if not nil, is called from several goroutines with the number of
	// parts of the LIDs that are done, and of all parts.
	Progress func(done, total int)
}

// The defaults of Options.
const (
	DefaultWitnesses = 16
	DefaultFindings  = 50
)

// setDefaults sets Witnesses and Findings if they are not positive.
func (o *Options) setDefaults() {
	o.Witnesses = cmp.Or(max(o.Witnesses, 0), DefaultWitnesses)
	o.Findings = cmp.Or(max(o.Findings, 0), DefaultFindings)
}

// eachPart calls do for each of n parts, with a worker for each goroutine, and reports progress.
func eachPart[W any](ctx context.Context, opt *Options, n int, start func() W, do func(w W, i int)) ([]W, error) {
	var done atomic.Int32
	return par.ForEachWith(ctx, opt.Workers, n, start, func(w W, i int) error {
		do(w, i)
		if parts := int(done.Add(1)); opt.Progress != nil {
			opt.Progress(parts, n)
		}
		return nil
	})
}

// Copying is how a switch sends a packet to several ports. It determines
// what a packet can hold while it waits (see docs/dev/multicast.md;
// Zhou, Liu and Chung treat unicast only).
type Copying uint8

const (
	// Independent is what InfiniBand switches do. They receive a packet as a
	// whole, and each copy leaves when its port has credits. Meanwhile the
	// packet holds only its buffer.
	Independent Copying = iota
	// Reserving receives a packet as a whole, and puts it into the queues of all
	// its output ports at once, in one order for all packets. From then on none
	// of these ports sends anything else, on any VL, until all copies have left.
	Reserving
	// LockStep receives a packet as a whole. The packet takes its output ports
	// one by one as they become free, and leaves by all at the same time.
	LockStep
	// Wormhole has buffers smaller than packets. A worm takes the output ports
	// of one switch all at once, as with Reserving. A blocked branch stops all
	// other branches, however far they are.
	Wormhole
)

// Port 0 of a switch takes all packets; none ever waits for it.

var copyings = [...]string{Independent: "independent", Reserving: "reserving", LockStep: "lock-step", Wormhole: "wormhole"}

// String returns the name on the command line.
func (c Copying) String() string {
	if int(c) < len(copyings) {
		return copyings[c]
	}
	return fmt.Sprintf("copying %d", uint8(c))
}

// UnmarshalText reads a name.
func (c *Copying) UnmarshalText(text []byte) error {
	i := slices.Index(copyings[:], string(text))
	if i < 0 {
		return fmt.Errorf("copying %q: want one of %v", text, copyings)
	}
	*c = Copying(i)
	return nil
}

// MarshalText returns String.
func (c Copying) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// Buffer is the room of a port for packets that it receives.
type Buffer struct {
	MTU     int // greatest payload in bytes
	Credits int // of 64 bytes each, for one VL of a port; 0 if unknown
}

const (
	// CreditBytes is the unit in which a port grants buffer space. A packet takes
	// whole units (IBA 7.9.4.4).
	CreditBytes = 64
	// headerBytes is the size of a multicast packet without its payload: LRH 8,
	// GRH 40, BTH 12, DETH 8, immediate data 4, ICRC 4 and VCRC 2 (IBA 5.2). No
	// packet of another service that a host sends without GRH has more.
	headerBytes = 78
)

// Needed returns the number of credits that a packet of the MTU takes.
func (b Buffer) Needed() int { return (b.MTU + headerBytes + CreditBytes - 1) / CreditBytes }

// report adds a finding if a packet does not fit, since proofs about credit
// loops assume that it does.
func (b Buffer) report(r *Result) {
	if b.Credits <= 0 || b.Credits >= b.Needed() {
		return
	}
	r.Findings = append(r.Findings, NewFinding(Rules, BufferTooSmall, (b.Needed()-b.Credits)*CreditBytes,
		"a VL has %d credits, %d bytes, and a multicast packet with an MTU of %d takes %d, %d bytes with headers",
		b.Credits, b.Credits*CreditBytes, b.MTU, b.Needed(), b.MTU+headerBytes))
}
