package lft

import (
	"fmt"
	"iter"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/text"
)

// VLCounts lists how many data VLs a port can have: the values of PortInfo.VLCap and
// OperationalVLs (IBA 14.2.5.6).
var VLCounts = [...]int{1, 2, 4, 8, 15}

// CheckVLCount returns an error unless a port can have n data VLs.
func CheckVLCount(n int) error {
	for _, v := range VLCounts {
		if n == v {
			return nil
		}
	}
	return fmt.Errorf("%d data VLs; ports have 1, 2, 4, 8 or 15", n)
}

// LeastVLCount returns the least number of data VLs, n or more, that a port can have.
func LeastVLCount(n int) int {
	for _, v := range VLCounts {
		if v >= n {
			return v
		}
	}
	return n
}

// OpenSMVLs returns the map that OpenSM by default gives ports with vls data VLs
// (OSM_DEFAULT_QOS_SL2VL, masked by sl2vl_update_table in osm_qos.c): SL s has VL s modulo
// vls, but SL 15 has VL 7 modulo vls. So only SL 15 on 15 VLs differs from IdentityVLs. vls
// is one of VLCounts.
func OpenSMVLs(vls int) VLMap {
	m := IdentityVLs(vls)
	m[NumSLs-1] = fabric.VL(7 % vls)
	return m
}

// IdentitySL2VL is the scheme identity on ports with vls data VLs: OpenSMVLs on all ports,
// as OpenSM sets them with QoS and no further options. An SL above the ports' VLs shares a
// VL with others; it is not dropped.
//
// With one VL it is the paper's configuration with one VL (Zhou, Liu and Chung, Fig. 8(a)).
// The error is CheckVLCount's.
func IdentitySL2VL(f *fabric.Fabric, vls int) (*SL2VL, error) {
	if err := CheckVLCount(vls); err != nil {
		return nil, err
	}
	return NewSL2VL(f, OpenSMVLs(vls)), nil
}

// SpreadSL2VL is the scheme spread: VL = SL mod vls for every input and output port of
// every switch, even if the ports have more than vls VLs. So a packet may use any VL on any
// port (Zhou, Liu and Chung, Fig. 8(b) and (d) with two and four VLs). The tables see the
// ports and the SL, never the load: the sender balances the VLs by its choice of SLs, by
// SpreadPathSLs or in simulation by (index of the source + packet number) mod vls, which
// the paper leaves open. A packet keeps its VL on its whole path, so this breaks no credit
// loop: tables with a credit loop on one VL have it on each. The error is CheckVLCount's.
func SpreadSL2VL(f *fabric.Fabric, vls int) (*SL2VL, error) {
	if err := CheckVLCount(vls); err != nil {
		return nil, err
	}
	return NewSL2VL(f, IdentityVLs(vls)), nil
}

// SpreadPathSLs gives out SLs 0 to vls-1, so that paths share the VLs of the scheme spread.
// The path from switch s to LID l gets the digit sums of s and l, to base vls, added modulo
// vls. With s + l instead, VLs would stay idle: tables give ports to LIDs in turn, so that
// the LIDs behind a port are at equal distances. maxLID is the highest LID of the tables.
func SpreadPathSLs(f *fabric.Fabric, maxLID fabric.LID, vls int) *PathSLs {
	digits := func(n int) (sum int) {
		for ; n > 0; n /= vls {
			sum += n % vls
		}
		return sum
	}
	from := make([][]fabric.NodeID, vls) // switches by the digits of their number
	for _, s := range f.Switches() {
		i := digits(int(s)) % vls
		from[i] = append(from[i], s)
	}
	p := NewPathSLs(f.NumSwitches(), maxLID)
	for i, switches := range from {
		row := make([]fabric.SL, int(maxLID)+1)
		for l := range row {
			row[l] = fabric.SL((i + digits(l)) % vls)
		}
		p.SetRow(row, switches...)
	}
	return p
}

// EachMap calls visit for each SL-to-VL map of a switch, given by its ports: all output
// ports with a cable, and for each all input ports, port 0 first.
func EachMap(f *fabric.Fabric, s fabric.NodeID, visit func(in, out fabric.PortNum)) {
	last := f.Node(s).NumPorts
	for out := fabric.PortNum(1); out <= last; out++ {
		if f.Peer(f.Port(s, out)) == fabric.NoPort {
			continue
		}
		for in := fabric.PortNum(0); in <= last; in++ {
			visit(in, out)
		}
	}
}

// PortPairs yields each pair of ports that a packet can come in by and leave by. On a
// switch the input port is 0 or has a cable, and the output port has a cable; on a CA or
// router the input port is 0. Pairs come in the order of output ports, then of input ports.
func (s *SL2VL) PortPairs() iter.Seq2[fabric.PortNum, fabric.PortID] {
	return func(yield func(fabric.PortNum, fabric.PortID) bool) {
		f := s.fab
		for out := range fabric.PortID(f.NumPorts()) {
			if f.Peer(out) == fabric.NoPort {
				continue
			}
			if !yield(0, out) {
				return
			}
			n := f.Owner(out)
			if !f.IsSwitch(n) {
				continue
			}
			for in := fabric.PortNum(1); in <= f.Node(n).NumPorts; in++ {
				if f.Peer(f.Port(n, in)) != fabric.NoPort && !yield(in, out) {
					return
				}
			}
		}
	}
}

// VLError means that a port lacks the VL that an SL maps to.
type VLError struct {
	In  fabric.PortNum // input port, 0 for CAs and routers
	Out fabric.PortID  // output port
	SL  fabric.SL
	VL  fabric.VL
	VLs int // data VLs that the port has

	name string
}

func (e *VLError) Error() string {
	return fmt.Sprintf("%s has %d data VLs, but SL %d by way in %d maps to VL %d", e.name, e.VLs, e.SL, e.In, e.VL)
}

// CheckVLs checks that every port with a cable has the VLs that its SLs map to. vls returns
// the data VLs of a port, one of VLCounts: the smaller VLCap of both ends of the cable.
// Errors: a *VLError for the first pair of ports, in the order of PortPairs, without a VL,
// and CheckVLCount's for results of vls.
func (s *SL2VL) CheckVLs(vls func(fabric.PortID) int) error {
	want := text.Each(s.maps, func(m VLMap) int { return m.VLs() })
	last, have := fabric.NoPort, 0
	for in, out := range s.PortPairs() {
		if out != last {
			last, have = out, vls(out)
			if err := CheckVLCount(have); err != nil {
				return fmt.Errorf("%s: %w", s.fab.PortName(out), err)
			}
		}
		if i := s.index[s.indexOf(in, out)]; want[i] > have {
			for sl, v := range s.maps[i] {
				if v != DropVL && int(v) >= have {
					return &VLError{In: in, Out: out, SL: fabric.SL(sl), VL: v, VLs: have, name: s.fab.PortName(out)}
				}
			}
		}
	}
	return nil
}
