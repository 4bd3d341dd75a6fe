// Package experiment simulates routings of one fabric under the same traffic, with package sim,
// and compares them: engines, numbers of virtual lanes, ways for switches to choose, multicast
// schemes. It makes no promise to other modules.
package experiment

import (
	"fmt"

	"github.com/ibweave/ibweave/sim"
)

// Setup is the hardware and the traffic of all points.
type Setup struct {
	Loads   []float64 // open loop; nil for other traffic
	Burst   int       // messages of each host in closed loop; 0 for other traffic
	Bytes   []int
	Seeds   []uint64
	Pattern sim.Pattern
	Sources sim.SourceCount
	Traffic sim.Traffic
	Stop    sim.Stop
	Config  sim.Config
	Buffer  int // bytes of a port, which its lanes share
	Flits   int // of each lane, in place of Buffer; 0 for none
	Packets int // longest packets that fit into a lane, in place of Buffer; 0 for none
}

// SettingError is a value that the fabric or the tables rule out. Setting is its flag of sim.
type SettingError struct {
	Setting string
	Err     error
}

func (e *SettingError) Error() string { return e.Setting + ": " + e.Err.Error() }

func (e *SettingError) Unwrap() error { return e.Err }

func wrong(setting, format string, args ...any) error {
	return &SettingError{setting, fmt.Errorf(format, args...)}
}

// lanes returns the VLs of the routing that has most.
func lanes(routings []Routing) (vls int) {
	for i := range routings {
		vls = max(vls, routings[i].Net.VLs())
	}
	return vls
}

// longest returns the most bytes of data in a packet of messages of the given size.
func (s *Setup) longest(bytes int) int {
	if s.Config.MTU > 0 {
		return min(bytes, s.Config.MTU)
	}
	return bytes
}

// config returns the hardware for messages of the given size and number of VLs.
func (s *Setup) config(bytes, vls int) sim.Config {
	cfg := s.Config
	switch {
	case s.Packets > 0:
		cfg.PacketBuffers(s.Packets, s.longest(bytes))
	case s.Flits > 0:
		cfg.BufferFlits = s.Flits
	default:
		cfg.DivideBuffer(s.Buffer, vls)
	}
	return cfg
}

// fits returns an error if a VL's buffer cannot hold a packet of such a message; for worms, a flit.
func (s *Setup) fits(bytes, vls int) error {
	cfg := s.config(bytes, vls)
	room, most := cfg.FlitBytes*cfg.BufferFlits, s.longest(bytes)+cfg.HeaderBytes
	if cfg.Copying < sim.Wormhole && most > room || room == 0 {
		return fmt.Errorf("a packet of %d bytes does not fit a buffer of %d flits of %d bytes: want a smaller --mtu, or a larger --buffer",
			most, cfg.BufferFlits, cfg.FlitBytes)
	}
	return nil
}
