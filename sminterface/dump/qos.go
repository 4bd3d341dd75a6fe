package dump

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
)

// qosClass is a class of ports for which opensm.conf has a set of options.
type qosClass uint8

const (
	qosCA  qosClass = iota // CA ports
	qosSw0                 // enhanced ports 0 of switches
	qosSwe                 // all other ports of switches
	qosRtr                 // router ports
)

// name is what the options of the class begin with.
func (c qosClass) name() string { return [...]string{"qos_ca", "qos_sw0", "qos_swe", "qos_rtr"}[c] }

// QoSError says which two maps OpenSM's options cannot have both.
type QoSError struct {
	// Option holds for both.
	Option string
	// From one way in to one way out, as in lft.SL2VL.At, SLs have the VLs of
	// Map, from the other those of OtherMap.
	In, OtherIn   fabric.PortNum
	Out, OtherOut fabric.PortID
	Map, OtherMap lft.VLMap

	f *fabric.Fabric
}

func (e *QoSError) Error() string {
	way := func(in fabric.PortNum, out fabric.PortID, m lft.VLMap) string {
		n := e.f.Owner(out)
		if !e.f.IsSwitch(n) {
			return fmt.Sprintf("VLs %s of %s %s", vlList(m), e.f.PortGUID(out), e.f.PortName(out))
		}
		node := e.f.Node(n)
		return fmt.Sprintf("VLs %s from port %d to port %d of switch %s %q", vlList(m), in, e.f.Num(out), node.GUID, node.Description)
	}
	return fmt.Sprintf("OpenSM has one option %s for both %s and %s", e.Option, way(e.In, e.Out, e.Map), way(e.OtherIn, e.OtherOut, e.OtherMap))
}

// vlList is a map as OpenSM's options have it.
func vlList(m lft.VLMap) string {
	var b strings.Builder
	for sl, v := range m {
		if sl > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(int(v)))
	}
	return b.String()
}

// arbitrationWeight is what every VL gets in the tables of low priority, in
// units of 64 bytes (IBA 7.6.9.2): a packet of the largest MTU, 4096 bytes.
const arbitrationWeight = 64

// QoSOptions are the lines of opensm.conf with which OpenSM gives the ports of
// a fabric the maps of s, without line ends. OpenSM has an option for each
// class of ports and none for a single port: qos_swe_sl2vl is for all ways
// through all switches, qos_ca_sl2vl and qos_rtr_sl2vl are for the ports of CAs
// and routers, and qos_sw0_sl2vl is for the way from an enhanced port 0 to
// itself (osm_qos.c). What no packet can use does not matter: ways in and out
// without cables. The error is a *QoSError, for the first two ways, in the
// order of lft.SL2VL.PortPairs, that need different maps in one option.
//
// OpenSM programs no map without "qos TRUE" (or -Q), and does not program base
// ports 0 as ways out nor, in 3.3.23, ports without cables. It then masks each
// VL with the operational VLs of the port (lft.SL2VL.CheckVLs says whether
// that changes any) and keeps VL 15.
//
// OpenSM's default VL arbitration has VL 0 alone in the tables of high
// priority, which would starve the others, so these options have all VLs in
// the tables of low priority, with equal weights, and none in the others.
// Tables of a port that are shorter than the list take its beginning.
// max_vls is the least number of VLs that IBA has for the map; 3.3.23 reads it
// for torus-2QoS only. max_op_vls, which takes VLs away from ports, is left
// alone: in its first sweep OpenSM still masks with the VLs from before.
func QoSOptions(s *lft.SL2VL) ([]string, error) {
	f := s.Fabric()
	var first [qosRtr + 1]struct {
		m   *lft.VLMap
		in  fabric.PortNum
		out fabric.PortID
	}
	add := func(c qosClass, in fabric.PortNum, out fabric.PortID) error {
		m := s.At(in, out)
		switch at := &first[c]; {
		case at.m == nil:
			at.m, at.in, at.out = m, in, out
		case at.m != m && *at.m != *m:
			return &QoSError{Option: c.name() + "_sl2vl", In: at.in, Out: at.out, Map: *at.m, OtherIn: in, OtherOut: out, OtherMap: *m, f: f}
		}
		return nil
	}
	for in, out := range s.PortPairs() {
		c := qosSwe
		switch f.Node(f.Owner(out)).Type {
		case fabric.CA:
			c = qosCA
		case fabric.Router:
			c = qosRtr
		}
		if err := add(c, in, out); err != nil {
			return nil, err
		}
	}
	for n := range fabric.NodeID(f.NumSwitches()) {
		if f.Node(n).EnhancedPort0 {
			if err := add(qosSw0, fabric.ManagementPort, f.PortBase(n)); err != nil {
				return nil, err
			}
		}
	}
	lines := []string{"qos TRUE"}
	for c := range first {
		if m := first[c].m; m != nil {
			name := qosClass(c).name()
			vls := lft.LeastVLCount(m.VLs())
			low := make([]string, vls)
			for v := range low {
				low[v] = fmt.Sprintf("%d:%d", v, arbitrationWeight)
			}
			lines = append(lines,
				fmt.Sprintf("%s_max_vls %d", name, vls),
				name+"_high_limit 0",
				name+"_vlarb_high 0:0",
				name+"_vlarb_low "+strings.Join(low, ","),
				name+"_sl2vl "+vlList(*m))
		}
	}
	return lines, nil
}
