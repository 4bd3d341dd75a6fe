package open

import (
	"bytes"
	"unicode"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/topology"
	"github.com/ibweave/ibweave/sminterface/ibdiagnet"
)

// Lines has the lines, from 1, of switches, adapters and their ports in the texts of an input, for
// viewers that show findings beside the text.
type Lines struct {
	Topology, Tables string              // the files; of tables that are to be looked at
	topology.Lines                       // in the topology
	Switches         map[fabric.GUID]int // in the tables: where the table of a switch begins
}

// LinesOf finds the lines of a topology.
func LinesOf(name string, text []byte) *Lines {
	l := new(Lines)
	l.readTopology(name, text)
	return l
}

// readTopology takes the lines of a text of any form that package topology reads.
func (l *Lines) readTopology(name string, text []byte) {
	l.Topology, l.Lines = name, topology.Lines{}
	_, _, _ = topology.Parse(name, text, topology.Options{Lenient: true, Lines: &l.Lines}) // without lines where it cannot be read
}

// readDatabase takes the lines of a db_csv: of nodes in NODES and of ports in LINKS.
func (l *Lines) readDatabase(name string, d *ibdiagnet.Database) {
	l.Topology, l.Lines = name, topology.Lines{Nodes: map[fabric.GUID]int{}, Ports: map[topology.NodePort]int{}}
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
}

// readTables takes the lines that begin the table of a switch, which have its GUID, of the file
// that Tables names.
func (l *Lines) readTables(name string, text []byte) {
	if name != l.Tables {
		return
	}
	l.Switches = map[fabric.GUID]int{}
	n := 0
	for line := range bytes.Lines(text) {
		n++
		if bytes.HasPrefix(line, []byte("0x")) || !bytes.Contains(bytes.ToLower(line), []byte("switch ")) {
			continue
		}
		for _, g := range guidsIn(line) {
			if l.Switches[g] == 0 {
				l.Switches[g] = n
			}
		}
	}
}

// guidsIn lists the runs of 16 hexadecimal digits of a line.
func guidsIn(line []byte) (list []fabric.GUID) {
	for _, digits := range bytes.FieldsFunc(line, func(c rune) bool { return !unicode.Is(unicode.ASCII_Hex_Digit, c) }) {
		if g, err := fabric.ParseGUID(string(digits)); err == nil && len(digits) == 16 {
			list = append(list, g)
		}
	}
	return list
}
