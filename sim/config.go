package sim

import (
	"fmt"
	"slices"
)

// word is the value of a setting; N has the setting's name and the names of its values.
type word[N names] uint8

// names returns the name of a setting, and the names of its values from 0 on.
type names interface {
	names() (what string, list []string)
}

// String returns the value's name.
func (w word[N]) String() string {
	var of N
	what, list := of.names()
	if int(w) < len(list) {
		return list[w]
	}
	return fmt.Sprintf("%s %d", what, uint8(w))
}

// MarshalText returns the value's name.
func (w word[N]) MarshalText() ([]byte, error) { return []byte(w.String()), nil }

// UnmarshalText sets the value by its name.
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

// Copying is how a switch sends a packet to several ports, with the names in package verify. It
// also determines how a packet with only one output port waits for this port.
type Copying = word[copyings]

type copyings struct{}

func (copyings) names() (what string, list []string) {
	return "copying", []string{"independent", "reserving", "lock-step", "wormhole", "greedy-wormhole"}
}

const (
	// Independent is what InfiniBand switches do. A packet enters a buffer that
	// has room for all of it. Each copy leaves when its port is free and the
	// next buffer has room. The packet keeps its room until the last copy has
	// left.
	Independent Copying = iota
	// Reserving also needs room for whole packets. A packet queues for all its
	// output channels at once, first come first served. It leaves by all of them
	// at one time, when it is first in each queue and all ports are free with
	// room behind them. A channel whose first packet waits stays idle.
	Reserving
	// LockStep also needs room for whole packets. A packet takes its output
	// ports one by one, as they become free with room behind them. It keeps
	// those it has, and leaves by all at one time.
	LockStep
	// Wormhole moves packets flit by flit; buffers may be smaller than packets.
	// A worm queues for all its output channels at once (the OCRQ of SPAM), gets
	// them when it is first in all queues, and frees all together behind its
	// last flit. Copies are asynchronous: see Config.OutputFlits.
	Wormhole
	// GreedyWormhole is Wormhole, but a worm takes its output channels one by
	// one, as they become free. verify does not check it, and a check for
	// Wormhole is not enough: a worm that holds a channel and waits for another
	// may close cycles that Wormhole cannot. Tables without findings for
	// verify's Wormhole and LockStep have never deadlocked here
	// (TestRandomRoutings), which is no proof.
	GreedyWormhole
)

// Arbitration chooses the next of the packets that wait for one output
// channel. Reserving and Wormhole ignore it: they serve packets in the order
// of their requests.
type Arbitration = word[arbitrations]

type arbitrations struct{}

func (arbitrations) names() (what string, list []string) {
	return "arbitration", []string{"round-robin", "fifo", "lowest-port"}
}

const (
	// RoundRobin serves the input buffers in turn, by port and then VL.
	RoundRobin Arbitration = iota
	// FIFO serves packets in the order of their requests.
	FIFO
	// LowestPort serves the lowest input port first, like the upper-input-first
	// rule of multistage networks. Requests of the same picosecond are compared
	// before any is served.
	LowestPort
)

// Choice is how a switch chooses the output port of a packet whose adaptive entry is
// Free. It compares the static port and those ports of the group that have a cable and
// a VL for the packet. Among ports with equal queues and credits it takes the static
// port, or else the next port above the static one, and after the highest port the
// lowest.
//
// A packet chooses once at each switch, when it is first in its input buffer and RoutingDelay has
// passed. Only Config.ChooseAgain lets it change its choice, while it is blocked.
type Choice = word[choices]

type choices struct{}

func (choices) names() (what string, list []string) {
	return "choice", []string{"least-queued", "most-credits"}
}

const (
	// LeastQueued takes the port that will be done first with what it sends and with what waits for it
	// at this switch, on any VL; among equals the port with the most credits.
	LeastQueued Choice = iota
	// MostCredits takes the port with the most credits on the packet's VL; among equals the least
	// queued port.
	MostCredits
)

// Config describes the hardware. The zero value is not valid: start from
// Defaults.
type Config struct {
	// Mbps is the data rate of all links in megabits a second; 0 takes each
	// link's rate from the fabric.
	Mbps int
	// WireDelay is how long a bit travels along any cable.
	WireDelay Time
	// CreditDelay is the time from when the last byte of a packet, or of a flit,
	// leaves a buffer until the sender gets the credit.
	CreditDelay Time
	// RoutingDelay is the time from when a packet's first byte enters a switch
	// until it asks for its output port. With flits it begins when the first
	// flit is complete and at the head of its buffer.
	RoutingDelay Time
	// Startup is how long a host prepares each message before its first packet
	// is ready.
	Startup Time
	// FlitBytes is the unit of buffers and credits; InfiniBand has 64 bytes.
	FlitBytes int
	// BufferFlits is the size of the input buffer of each port and VL of a switch.
	BufferFlits int
	// OutputFlits is the size of the output buffer of each port and VL, with
	// flits only. If it is 1 or more, a flit leaves the input buffer when the
	// output buffers of all branches have room, and is copied to all at once
	// (SPAM). If it is 0, each branch takes the flit at the head of the input
	// buffer when its link is free, and the flit leaves when all have taken it.
	// In both cases a branch idles while a sibling is blocked.
	OutputFlits int
	// MTU is the most bytes of data in a packet; longer messages are cut. 0
	// sends each message as one packet.
	MTU int
	// HeaderBytes is added to each packet.
	HeaderBytes int
	Copying     Copying
	Arbitration Arbitration
	// Choice applies if Network.Adaptive is set.
	Choice Choice
	// ChooseAgain lets a packet whose chosen port is blocked wait for all ports that it may use, and
	// take the first that is free with room behind it. HBF entries never choose again. It needs
	// Independent copying.
	ChooseAgain bool
	// FullChecks is how many events pass between two full counts of flits and credits; if it is 0,
	// they are only checked as they move. Errors are *ConservationError.
	FullChecks int
}

// PortBuffer is the bytes of buffer that a switch port has by Defaults, for
// all VLs together: 1024 credits. It is an estimate: vendors publish no sizes.
// The closest is Mellanox's model of its switches, the InfiniBand Flit Level
// Model for OMNeT++ (2004-2013): modules.ini gives an input buffer of
// InfiniScale IV 1000 flits in all, and examples set ibuf.totalBufferSize to
// 1000 credits a port, which lanes share. A credit is 64 bytes (IBA 7.9). The
// model's authors warn that products differ.
const PortBuffer = 64 << 10

// Defaults returns typical hardware: links at the rates of the fabric, packets of 4 KB, 100 ns in a
// switch, 10 ns for two meters of wire, 10 ns for credits, and no headers. Its buffers are for one
// VL; DivideBuffer divides them among several.
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

// PacketBuffers sets FlitBytes, at most 64, and BufferFlits to the room of n
// packets with the given bytes of data, headers not included.
func (c *Config) PacketBuffers(n, bytes int) {
	bytes += c.HeaderBytes
	c.FlitBytes = min(64, max(bytes, 1))
	c.BufferFlits = n * c.flits(bytes)
}

// flits returns how many flits hold some bytes.
func (c *Config) flits(bytes int) int { return (bytes + c.FlitBytes - 1) / c.FlitBytes }

// maxBytes bounds packets, and buffers in bytes. No hardware comes near it, and no sum
// overflows.
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
