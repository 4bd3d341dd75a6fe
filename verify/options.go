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
	// Complete says that the fabric has all ports there are. Else LIDs that have
	// entries and no port leave rules undecided, since the port may be one that the
	// topology does not tell.
	Complete bool
	// Buffer is the room that the switches have for packets; the zero value
	// means unknown.
	Buffer Buffer
	// Workers is how many goroutines share the work; 0 for one on each CPU.
	// The result does not depend on it.
	Workers int
	// Witnesses bounds the credit loops that are shown; 0 for
	// DefaultWitnesses. All are counted.
	Witnesses int
	// Findings is the most findings for each rule; 0 stands for
	// DefaultFindings. One further finding tells how many are left out.
	Findings int
	// Progress, when set, is told how many parts of the LIDs are done, of all.
	// It is called from several goroutines.
	Progress func(done, total int)
}

// The defaults of Options.
const (
	DefaultWitnesses = 16
	DefaultFindings  = 50
)

// setDefaults bounds the findings by default where nothing else does.
func (o *Options) setDefaults() {
	o.Witnesses = cmp.Or(max(o.Witnesses, 0), DefaultWitnesses)
	o.Findings = cmp.Or(max(o.Findings, 0), DefaultFindings)
}

// eachPart calls do with a worker for each of n parts of the LIDs, and tells of the progress.
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

// Copying is how a switch sends a packet to several ports, which decides what a
// packet can hold while it waits (Zhou, Liu and Chung treat unicast only; see
// docs/dev/multicast.md).
type Copying uint8

const (
	// Independent is the way of InfiniBand switches: the packet is received as
	// a whole, and each copy leaves when its port has credits. Meanwhile the
	// packet holds only its buffer.
	Independent Copying = iota
	// Reserving: the packet is received as a whole, and takes its place in the
	// queues of all its output ports at once, in one order for all packets; none
	// of them sends anything else, on any VL, from then on until all copies have
	// left.
	Reserving
	// LockStep: the packet is received as a whole, takes its output ports one by
	// one as they fall free, and leaves by all of them at the same time.
	LockStep
	// Wormhole: buffers are smaller than packets. A worm takes the output ports
	// of one switch all at once, as with Reserving, and a branch that cannot go
	// on stops all the others, however far they got.
	Wormhole
)

// Port 0 of a switch takes whatever comes and is never waited for.

var copyings = [...]string{Independent: "independent", Reserving: "reserving", LockStep: "lock-step", Wormhole: "wormhole"}

// String is the name on the command line.
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

// MarshalText is String.
func (c Copying) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// Buffer is the room that ports have for packets that come in.
type Buffer struct {
	MTU     int // greatest payload in bytes
	Credits int // of 64 bytes each, that one VL of a port has; 0 if unknown
}

const (
	// CreditBytes is the unit in which a port grants buffer space. A packet takes
	// whole units (IBA 7.9.4.4).
	CreditBytes = 64
	// headerBytes is what a multicast packet has besides its payload: LRH 8, GRH 40,
	// BTH 12, DETH 8, immediate data 4, ICRC 4 and VCRC 2 (IBA 5.2). No packet of
	// another service that a host sends without GRH has more.
	headerBytes = 78
)

// Needed is how many credits a packet of the MTU takes.
func (b Buffer) Needed() int { return (b.MTU + headerBytes + CreditBytes - 1) / CreditBytes }

// report says when a packet does not fit: what is proven about credit loops rests
// on that.
func (b Buffer) report(r *Result) {
	if b.Credits <= 0 || b.Credits >= b.Needed() {
		return
	}
	r.Findings = append(r.Findings, NewFinding(Rules, BufferTooSmall, (b.Needed()-b.Credits)*CreditBytes,
		"a VL has %d credits, %d bytes, and a multicast packet with an MTU of %d takes %d, %d bytes with headers",
		b.Credits, b.Credits*CreditBytes, b.MTU, b.Needed(), b.MTU+headerBytes))
}
