package sim

import (
	"fmt"
	"slices"
)

// word is a value of a setting, which texts and files name: N has the names.
type word[N names] uint8

// names returns the name of a setting, and the names of its values from 0 on.
type names interface {
	names() (what string, list []string)
}

// String is the name, on the command line and in results.
func (w word[N]) String() string {
	var of N
	what, list := of.names()
	if int(w) < len(list) {
		return list[w]
	}
	return fmt.Sprintf("%s %d", what, uint8(w))
}

// MarshalText is String.
func (w word[N]) MarshalText() ([]byte, error) { return []byte(w.String()), nil }

// UnmarshalText reads a name.
func (w *word[N]) UnmarshalText(text []byte) error {
	var of N
	what, list := of.names()
	i := slices.Index(list, string(text))
	if i < 0 {
		return fmt.Errorf("%s %q: want one of %v", what, text, list)
	}
	*w = word[N](i)
	return nil
}

// Copying is how a switch sends a packet to several ports; verify uses the same names. It also
// determines how a packet with one output port waits for that port.
type Copying = word[copyings]

type copyings struct{}

func (copyings) names() (what string, list []string) {
	return "copying", []string{"independent", "reserving", "lock-step", "wormhole", "greedy-wormhole"}
}

const (
	// Independent is the way of InfiniBand switches: a packet enters a buffer
	// that has room for all of it, each copy leaves when its port is free and
	// the buffer behind it has room, and the packet keeps its place until the
	// last copy has left.
	Independent Copying = iota
	// Reserving: room for a whole packet as with Independent, but a packet takes
	// its place in the queues of all its output channels at once, first come
	// first served, and leaves by all of them at one time when it is first in
	// each and all are free and have room behind them. A channel whose first
	// packet waits stays idle.
	Reserving
	// LockStep: room for a whole packet as with Independent, but a packet takes
	// its output ports one by one, as they fall free with room behind them, keeps
	// what it has, and leaves by all of them at one time.
	LockStep
	// Wormhole: packets move flit by flit, and buffers may be smaller than
	// packets. A worm takes its place in the queues of all its output channels
	// at once (the OCRQ of SPAM), gets them when it is first in all, and lets
	// them go together behind its last flit. Copies are asynchronous: see
	// Config.OutputFlits.
	Wormhole
	// GreedyWormhole is Wormhole with a worm that takes its output channels one by
	// one, as they fall free. verify has no name for it, and clean for Wormhole is
	// not enough: a worm that has one channel and waits for another closes cycles
	// that atomic requests do not. What is clean for verify's Wormhole and its
	// LockStep both has never deadlocked here, which is a finding of
	// TestRandomRoutings and no proof.
	GreedyWormhole
)

// Arbitration determines which of the packets that wait for one output channel
// goes next. Reserving and Wormhole ignore it: they serve packets in the order
// in which they came.
type Arbitration = word[arbitrations]

type arbitrations struct{}

func (arbitrations) names() (what string, list []string) {
	return "arbitration", []string{"round-robin", "fifo", "lowest-port"}
}

const (
	// RoundRobin serves the input buffers in turn, by port and then VL.
	RoundRobin Arbitration = iota
	// FIFO serves packets in the order in which they asked.
	FIFO
	// LowestPort serves the lowest input port first, as the upper-input-first
	// rule of multistage networks does. Packets that come at the same
	// picosecond are compared before any of them goes.
	LowestPort
)

// Choice is how a switch chooses the output port of a packet whose entry is Free. It compares
// the static port and the ports of the group that have a cable and a VL for the packet. Of
// ports that are equal in both of its measures it takes the static port, or else the next one
// above it, from the lowest port on after the highest.
//
// A packet chooses once at each switch: when it is the first of its input buffer and
// RoutingDelay has passed, and nothing later changes the choice. Config.ChooseAgain lifts that
// for packets that are blocked.
type Choice = word[choices]

type choices struct{}

func (choices) names() (what string, list []string) {
	return "choice", []string{"least-queued", "most-credits"}
}

const (
	// LeastQueued takes the port that is done first with what it sends and with all that waits for
	// it at this switch, on any VL; among equal ports the one with the most credits.
	LeastQueued Choice = iota
	// MostCredits takes the port with the most free room in the buffer at the other end, as
	// far as the switch knows it, on the packet's VL; of several the least queued one.
	MostCredits
)

// Config is how the hardware behaves. The zero value is not valid: start from
// Defaults.
type Config struct {
	// Mbps is the data rate of all links in megabits a second; 0 takes each
	// link's own from the fabric.
	Mbps int
	// WireDelay is how long a bit travels along a cable, host cables included.
	WireDelay Time
	// CreditDelay is the time from when the last byte of a packet, or flit, has
	// left a buffer until the sender behind it knows of the room.
	CreditDelay Time
	// RoutingDelay is the time from when a packet's first byte enters a switch
	// until it asks for its output port. With flits, from when its first flit is
	// complete and at the head of its buffer.
	RoutingDelay Time
	// Startup is how long a host is busy with each message before its first
	// packet is ready.
	Startup Time
	// FlitBytes is the unit of buffers and credits. InfiniBand's credits are of
	// 64 bytes.
	FlitBytes int
	// BufferFlits is the size of the input buffer of each port and VL of a switch.
	BufferFlits int
	// OutputFlits is the size of the output buffer of each port and VL, with flits
	// only. With 1 or more, a flit leaves the input buffer when the output
	// buffers of all branches have room, and is copied to all of them at once
	// (SPAM). With 0 each branch takes the flit at the head of the input buffer
	// when its link is free, and the flit goes when all have taken it. Either
	// way a branch that gets no flit because a sibling is blocked has bubbles.
	OutputFlits int
	// MTU is the most bytes of data in a packet; longer messages are cut. 0 sends
	// every message as one packet.
	MTU int
	// HeaderBytes is added to each packet.
	HeaderBytes int
	Copying     Copying
	Arbitration Arbitration
	// Choice is how a packet chooses its output port with Network.Adaptive.
	Choice Choice
	// ChooseAgain has a packet that cannot leave by the port that it has chosen wait for all
	// that it may leave by, and take the first one that is free and has room behind it. HBF
	// entries never choose again. With Independent copying only.
	ChooseAgain bool
	// FullChecks is after how many events all flits and credits are counted again; 0 leaves
	// it at what is checked as they move. Errors are *ConservationError.
	FullChecks int
}

// PortBuffer is the bytes of buffer that a switch port has by Defaults, for all VLs together: 1024
// credits. It is an estimate, since vendors publish no sizes. The closest public figure is
// Mellanox's own model of its switches, the InfiniBand Flit Level Model for OMNeT++ (2004-2013):
// modules.ini says that an input buffer of InfiniScale IV has 1000 flits in all, and examples set
// ibuf.totalBufferSize to 1000 credits a port, which lanes share. A credit is 64 bytes (IBA 7.9). The
// authors warn that its parameters are not the exact ones of products.
const PortBuffer = 64 << 10

// Defaults returns hardware as operators have it: links at the rates of the fabric, packets of 4
// KB, 100 ns in a switch, 10 ns for two meters of wire, 10 ns for credits, and no headers. Its
// buffers are for one VL: DivideBuffer divides them among several.
func Defaults() Config {
	return Config{
		WireDelay:    10 * Nanosecond,
		CreditDelay:  10 * Nanosecond,
		RoutingDelay: 100 * Nanosecond,
		FlitBytes:    64,
		BufferFlits:  PortBuffer / 64,
		MTU:          4096,
	}
}

// DivideBuffer gives each VL an equal part of a port's buffer, in whole flits.
func (c *Config) DivideBuffer(bytes, vls int) {
	c.BufferFlits = bytes / c.FlitBytes / vls
}

// PacketBuffers makes flits of at most 64 bytes and buffers that take n packets
// with the given bytes of data, headers not included, and nothing more.
func (c *Config) PacketBuffers(n, bytes int) {
	bytes += c.HeaderBytes
	c.FlitBytes = min(64, max(bytes, 1))
	c.BufferFlits = n * c.flits(bytes)
}

// flits is how many flits a packet with the given bytes of data has.
func (c *Config) flits(bytes int) int { return (bytes + c.FlitBytes - 1) / c.FlitBytes }

// maxBytes bounds packets, and buffers in bytes: far beyond any hardware, and
// small enough that no sum overflows.
const maxBytes = 1 << 30

// check returns an error if c is not valid.
func (c *Config) check() error {
	for _, v := range []struct {
		name  string
		value int64
		least int64
		most  int64
	}{
		{"Mbps", int64(c.Mbps), 0, 1 << 30},
		{"WireDelay", int64(c.WireDelay), 0, int64(Second)},
		{"CreditDelay", int64(c.CreditDelay), 0, int64(Second)},
		{"RoutingDelay", int64(c.RoutingDelay), 0, int64(Second)},
		{"Startup", int64(c.Startup), 0, int64(1000 * Second)},
		{"FlitBytes", int64(c.FlitBytes), 1, 1 << 20},
		{"BufferFlits", int64(c.BufferFlits), 1, maxBytes / int64(max(c.FlitBytes, 1))},
		{"OutputFlits", int64(c.OutputFlits), 0, 1 << 20},
		{"MTU", int64(c.MTU), 0, maxBytes},
		{"HeaderBytes", int64(c.HeaderBytes), 0, 1 << 20},
		{"Copying", int64(c.Copying), 0, int64(GreedyWormhole)},
		{"Arbitration", int64(c.Arbitration), 0, int64(LowestPort)},
		{"Choice", int64(c.Choice), 0, int64(MostCredits)},
		{"FullChecks", int64(c.FullChecks), 0, 1 << 40},
	} {
		if v.value < v.least || v.value > v.most {
			return fmt.Errorf("%s is %d: want %d to %d", v.name, v.value, v.least, v.most)
		}
	}
	if c.OutputFlits > 0 && c.Copying < Wormhole {
		return fmt.Errorf("OutputFlits with %s copying: only worms have output buffers", c.Copying)
	}
	return nil
}
