package plan

import (
	"encoding/csv"
	"fmt"
	"io"
	"strings"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/names"
)

// writer names the ports of a fabric as operators do. It reads each name back; if the name does not
// mean this port alone, it writes the GUID instead.
type writer struct {
	f *fabric.Fabric
	b *binder
}

func newWriter(f *fabric.Fabric) *writer { return &writer{f, &binder{f: f, x: newIndex(f)}} }

// means returns true if the reader of plans would take e for port p.
func (w *writer) means(e End, p fabric.PortID) bool {
	w.b.invented, w.b.byName = nil, map[string]fabric.NodeID{}
	s, err := w.b.resolve(e)
	return err == nil && int(s.node) < w.f.NumNodes() && s == spot{w.f.Owner(p), w.f.Num(p)}
}

// name returns a port as in UFM's NDT, by label if it has one.
func (w *writer) name(p fabric.PortID) End {
	f, n, num := w.f, w.f.Owner(p), int(w.f.Num(p))
	name := f.Name(n).Text
	byNumber := fmt.Sprintf("Port %d", num)
	var tries []End
	if x := names.ChipOf(name); f.IsSwitch(n) {
		if label := f.Label(p); label != "" {
			tries = append(tries, End{Device: x.System, Port: "Port " + label})
		}
		chip := End{Device: x.System, Port: chipPort(x, num)}
		if x.Card != 0 {
			tries = append(tries, chip)
		}
		tries = append(tries, End{Device: x.System, Port: byNumber})
		if x.Unit != 0 {
			tries = append(tries, chip)
		}
	} else if host, _, ok := names.HostOf(name); ok {
		port := name
		if f.Node(n).NumPorts > 1 {
			port += " " + byNumber
		}
		tries = append(tries, End{Device: host, Port: port})
	}
	return w.first(p, append(tries, End{Device: name, Port: byNumber}), byNumber, "\r\n", strings.TrimSpace)
}

// first cleans the device of each of tries, and returns the first whose device has no character of
// without and which means p when read back; if there is none, node GUID and port.
func (w *writer) first(p fabric.PortID, tries []End, port, without string, clean func(string) string) End {
	for _, e := range tries {
		if e.Device = clean(e.Device); e.Device != "" && !strings.ContainsAny(e.Device, without) && w.means(e, p) {
			return e
		}
	}
	return End{Device: w.f.Node(w.f.Owner(p)).GUID.String(), Port: port}
}

// cable writes a cable like Cable.String, with the host before the switch.
func (w *writer) cable(p, q fabric.PortID) string {
	if w.f.IsSwitch(w.f.Owner(p)) && !w.f.IsSwitch(w.f.Owner(q)) {
		p, q = q, p
	}
	c := Cable{Ends: [2]End{w.name(p), w.name(q)}}
	for i, port := range [2]fabric.PortID{p, q} {
		n := w.f.Owner(port)
		if guid := w.f.Node(n).GUID.String(); c.Ends[i].Device == guid && w.f.Name(n).Text != "" {
			c.Ends[i].Device = w.f.Name(n).Text + " " + guid // for people, who know it by name
		}
	}
	return c.String()
}

// Write writes the cables of a fabric as a plan of one of Forms, in the order
// of ports. Cables inside a chassis and to aggregation nodes are left out.
// Errors are those of out.
func Write(out io.Writer, f *fabric.Fabric, form string) error {
	w := newWriter(f)
	switch form {
	case Topo:
		return w.topo(out)
	case CSV:
		return w.table(out, []string{"node1", "port1", "node2", "port2"}, nil)
	}
	return w.table(out, []string{"#StartDevice", "StartPort", "EndDevice", "EndPort", "LinkType"}, []string{"Data"})
}

// planned yields the cables that a plan lists; the host's end comes first.
func (w *writer) planned(yield func(p, q fabric.PortID) bool) {
	for _, c := range w.f.Cables() {
		a, z := c.A, c.B
		if w.f.IsSwitch(w.f.Owner(a)) && !w.f.IsSwitch(w.f.Owner(z)) {
			a, z = z, a
		}
		if w.b.x.planned(a, z) && !yield(a, z) {
			return
		}
	}
}

// table writes CSV: the header, then a row for each cable that ends with the fields of more.
func (w *writer) table(out io.Writer, header, more []string) error {
	rows := [][]string{header}
	for p, q := range w.planned {
		a, z := w.name(p), w.name(q)
		if strings.HasPrefix(a.Device, "#") { // which would be a comment
			a = End{w.f.Node(w.f.Owner(p)).GUID.String(), fmt.Sprintf("Port %d", w.f.Num(p)), ""}
		}
		rows = append(rows, append([]string{a.Device, a.Port, z.Device, z.Port}, more...))
	}
	return csv.NewWriter(out).WriteAll(rows)
}

// topo writes a .topo file: a section for each system, in the order of its first port.
// Each cable is in the section of one end.
func (w *writer) topo(out io.Writer) error {
	sections := map[string]*strings.Builder{}
	var order []*strings.Builder
	for q, p := range w.planned { // the section is that of p, the switch
		a, z := w.topoName(p), w.topoName(q)
		s := sections[a.Device]
		if s == nil {
			s = &strings.Builder{}
			sections[a.Device], order = s, append(order, s)
			fmt.Fprintf(s, "%s %s\n", w.topoType(p), a.Device)
		}
		fmt.Fprintf(s, "   %s -> %s %s %s\n", a.Port, w.topoType(q), z.Device, z.Port)
	}
	for _, s := range order {
		if _, err := fmt.Fprintln(out, s); err != nil {
			return err
		}
	}
	return nil
}

// topoName names a port for a .topo file, without blanks.
func (w *writer) topoName(p fabric.PortID) End {
	f, n, num := w.f, w.f.Owner(p), w.f.Num(p)
	name := f.Name(n).Text
	port := fmt.Sprintf("P%d", num)
	var tries []End
	if f.IsSwitch(n) {
		x := names.ChipOf(name)
		switch {
		case x.Card != 0:
			tries = append(tries, End{Device: x.System, Port: fmt.Sprintf("%c%d/U%d/%s", x.Card, x.Slot, max(1, x.Unit), port)})
		case x.Unit != 0:
			tries = append(tries, End{Device: x.System, Port: port}, End{Device: x.System, Port: fmt.Sprintf("U%d/%s", x.Unit, port)})
		}
	} else if host, adapter, ok := names.HostOf(name); ok {
		tries = append(tries, End{Device: host, Port: adapter + "/" + port})
	}
	return w.first(p, append(tries, End{Device: name, Port: port}), port, `/#,;>"`, func(s string) string { return strings.Join(strings.Fields(s), "_") })
}

// topoType returns the type of p's system: a switch's model if described, else node type and number
// of ports, as HCA2.
func (w *writer) topoType(p fabric.PortID) string {
	n := w.f.Owner(p)
	x := w.f.Node(n)
	if m := names.ChipOf(x.Description).Model; m != "" && w.f.IsSwitch(n) && !strings.ContainsAny(m, " \t") {
		return m
	}
	types := map[fabric.NodeType]string{fabric.Switch: "SWITCH", fabric.CA: "HCA", fabric.Router: "ROUTER"}
	return fmt.Sprintf("%s%d", types[x.Type], x.NumPorts)
}
