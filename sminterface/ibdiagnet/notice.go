package ibdiagnet

import (
	"fmt"

	"github.com/ibweave/ibweave/fabric"
)

// Notice lists faults of the fabric that a database reports: warnings and errors
// of ibdiagnet, one for each kind in a section; more than one master; cables
// whose ends are set up differently. file is for messages. A Problem stands for
// all Count faults of its kind, and names the first.
func (d *Database) Notice(file string) []fabric.Problem {
	list := d.events(file)
	if masters := d.Masters(); len(masters) > 1 {
		list = append(list, fabric.Problem{Kind: SeveralMasters, File: file, Count: len(masters), Node: masters[0].Node,
			Message: fmt.Sprintf("%d subnet managers say that they are the master, those of ports %s and %s the first", len(masters), masters[0].Port, masters[1].Port)})
	}
	return append(list, d.unevenCables(file)...)
}

// events counts the warnings of each kind in each section.
func (d *Database) events(file string) (list []fabric.Problem) {
	index := map[[2]string]int{}
	for i := range d.Warnings {
		w := &d.Warnings[i]
		key := [2]string{w.Section, w.Event}
		if at, known := index[key]; known {
			list[at].Count++
			continue
		}
		index[key] = len(list)
		list = append(list, fabric.Problem{Kind: ToolWarning, File: file, Line: w.Line, Count: 1, Node: w.Node, Port: fabric.PortNum(w.PortNum),
			Message: fmt.Sprintf("%s: %s", w.Event, w.Summary)})
	}
	return list
}

// unevenCables finds the cables whose ends are both active and differ in data VLs or
// MTU.
func (d *Database) unevenCables(file string) []fabric.Problem {
	f := d.Fabric
	x := fabric.Problem{Kind: UnevenCable, File: file}
	for p := range fabric.PortID(f.NumPorts()) {
		q := f.Peer(p)
		if q == fabric.NoPort || q < p || d.Ports[p].State != Active || d.Ports[q].State != Active {
			continue
		}
		a, b := &d.Ports[p], &d.Ports[q]
		what := ""
		switch {
		case differ(a.OpVLs, b.OpVLs):
			what = fmt.Sprintf("%d data VLs in operation here and %d at %s", a.OpVLs, b.OpVLs, f.PortName(q))
		case differ(a.MTU, b.MTU):
			what = fmt.Sprintf("an MTU of %d bytes here and %d at %s", a.MTU, b.MTU, f.PortName(q))
		default:
			continue
		}
		if x.Count++; x.Count == 1 {
			x.Line, x.Node, x.Port, x.Message = d.PortLine(p), f.Node(f.Owner(p)).GUID, f.Num(p), what
		}
	}
	if x.Count == 0 {
		return nil
	}
	return []fabric.Problem{x}
}
