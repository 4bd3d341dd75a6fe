package open

import (
	"bytes"
	"unicode"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/topology"
	"github.com/ibweave/ibweave/sminterface/ibdiagnet"
	"github.com/ibweave/ibweave/state"
)

// TopologyLines returns the lines of nodes and ports in a
// topology of any form but db_csv; none if it cannot be read.
func TopologyLines(name string, text []byte) *state.Lines {
	l := &state.Lines{Topology: name}
	_, _, _ = topology.Parse(name, text, topology.Options{Lenient: true, Lines: &l.Lines})
	return l
}

// databaseLines returns the lines of a db_csv: those of nodes in NODES, those of ports in LINKS.
func databaseLines(name string, d *ibdiagnet.Database) *state.Lines {
	l := &state.Lines{Topology: name, Lines: topology.Lines{Nodes: map[fabric.GUID]int{}, Ports: map[topology.NodePort]int{}}}
	f := d.Fabric
	for n := range fabric.NodeID(f.NumNodes()) {
		g := f.Node(n).GUID
		l.Nodes[g] = d.NodeLine(g)
		for num := range f.Node(n).NumPorts + 1 {
			if line := d.PortLine(f.Port(n, num)); line > 0 {
				l.Ports[topology.NodePort{Node: g, Port: num}] = line
			}
		}
	}
	return l
}

// tableLines returns, by GUID, the line at which the table of a switch begins.
func tableLines(text []byte) map[fabric.GUID]int {
	lines := map[fabric.GUID]int{}
	n := 0
	for line := range bytes.Lines(text) {
		n++
		if bytes.HasPrefix(line, []byte("0x")) || !bytes.Contains(bytes.ToLower(line), []byte("switch ")) {
			continue
		}
		for _, g := range guidsIn(line) {
			if lines[g] == 0 {
				lines[g] = n
			}
		}
	}
	return lines
}

// guidsIn lists the GUIDs in a line: each run of 16 hexadecimal digits.
func guidsIn(line []byte) (list []fabric.GUID) {
	for _, digits := range bytes.FieldsFunc(line, func(c rune) bool { return !unicode.Is(unicode.ASCII_Hex_Digit, c) }) {
		if g, err := fabric.ParseGUID(string(digits)); err == nil && len(digits) == 16 {
			list = append(list, g)
		}
	}
	return list
}
