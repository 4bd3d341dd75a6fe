package dump

import (
	"fmt"
	"strings"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
)

// qosClasses has the prefix of the options of opensm.conf for each class of ports.
var qosClasses = [...]string{qosCA: "qos_ca", qosSw0: "qos_sw0", qosSwe: "qos_swe", qosRtr: "qos_rtr"}

const (
	qosCA  = iota // CA ports
	qosSw0        // enhanced ports 0 of switches
	qosSwe        // all other ports of switches
	qosRtr        // router ports
)

// vlList returns a map in the form of OpenSM's options.
func vlList(m *lft.VLMap) string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(*m), " ", ","), "[]")
}

// arbitrationWeight is the weight of every VL in the tables of low priority, in
// units of 64 bytes (IBA 7.6.9.2): a packet of the largest MTU, 4096 bytes.
const arbitrationWeight = 64

// QoSOptions returns the lines of opensm.conf, without line ends, with
// which OpenSM gives the ports of a fabric the maps of s. OpenSM has an
// option for each class of ports and none for a single port: qos_swe_sl2vl
// is for all pairs of an input and an output port of switches, qos_ca_sl2vl
// and qos_rtr_sl2vl are for the ports of CAs and routers, and qos_sw0_sl2vl
// is for packets from an enhanced port 0 to itself (osm_qos.c). Pairs with
// an uncabled port do not matter. The error names the first two pairs, in
// the order of lft.SL2VL.PortPairs, that need different maps in one option.
//
// OpenSM programs no map without "qos TRUE" (or -Q), none for a base port 0
// as output and, in 3.3.23, none for ports without cables. In other maps
// it masks each VL but VL 15 with the operational VLs of the port;
// lft.SL2VL.CheckVLs reports if that changes any VL.
//
// OpenSM's default VL arbitration has VL 0 alone in the tables of high
// priority, which would starve the others, so these options have all VLs in
// the tables of low priority, with equal weights, and none in the others. A
// port with a shorter table takes the beginning of the list. max_vls is the
// least number of VLs that IBA has for the map; 3.3.23 reads it for
// torus-2QoS only. max_op_vls, which takes VLs away from ports, is left
// alone: in its first sweep OpenSM still masks with the VLs from before.
func QoSOptions(s *lft.SL2VL) ([]string, error) {
	f := s.Fabric()
	type way struct {
		m   *lft.VLMap
		in  fabric.PortNum
		out fabric.PortID
	}
	text := func(w way) string {
		n := f.Owner(w.out)
		if !f.IsSwitch(n) {
			return fmt.Sprintf("VLs %s of %s %s", vlList(w.m), f.PortGUID(w.out), f.PortName(w.out))
		}
		return fmt.Sprintf("VLs %s from port %d to port %d of switch %s %q", vlList(w.m), w.in, f.Num(w.out), f.Node(n).GUID, f.Node(n).Description)
	}
	var first [len(qosClasses)]way
	add := func(c int, in fabric.PortNum, out fabric.PortID) error {
		w := way{s.At(in, out), in, out}
		if at := &first[c]; at.m == nil {
			*at = w
		} else if *at.m != *w.m {
			return fmt.Errorf("OpenSM has one option %s_sl2vl for both %s and %s", qosClasses[c], text(*at), text(w))
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
	for _, n := range f.Switches() {
		if f.Node(n).EnhancedPort0 {
			if err := add(qosSw0, fabric.ManagementPort, f.PortBase(n)); err != nil {
				return nil, err
			}
		}
	}
	lines := []string{"qos TRUE"}
	for c := range first {
		if m := first[c].m; m != nil {
			name := qosClasses[c]
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
				name+"_sl2vl "+vlList(m))
		}
	}
	return lines, nil
}
