package page

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"embed"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/lft/adaptive"
	"github.com/ibweave/ibweave/verify"
)

//go:embed assets
var assets embed.FS

// scripts lists the parts of the page's program in order; they share one scope.
var scripts = []string{"data.js", "paths.js", "view.js", "boxes.js", "heat.js", "charts.js", "picker.js", "panels.js", "main.js"}

// document is the JSON for the page's program. It numbers nodes by NodeID and ports by
// PortID. Long lists are in the arrays.
type document struct {
	Title    string `json:"title"`
	Version  string `json:"version"`
	Shape    string `json:"shape,omitempty"`
	Layout   string `json:"layout"` // "grid" or "levels"
	Switches int    `json:"switches"`
	// Interactive is true if the page has the compiler.
	Interactive bool `json:"interactive,omitempty"`

	Names []string      `json:"names"` // by node
	GUIDs []fabric.GUID `json:"guids"` // by node
	Links []string      `json:"links"` // the different widths and speeds
	// Labels are the different labels of ports, "" first; array label has the index by port.
	Labels []string `json:"labels,omitempty"`

	Tables string  `json:"tables"` // "here", "none", or why they are left out
	Max    int64   `json:"max"`    // routes on the most loaded channel between switches
	Mean   float64 `json:"mean"`

	// For two states: the name of the state, the box of both, and in the new state's document
	// the changes.
	State   string    `json:"state,omitempty"`
	Box     []float64 `json:"box,omitempty"` // left, top, right, bottom
	Changes []Change  `json:"changes,omitempty"`
	Summary []Note    `json:"summary,omitempty"`
	// Was maps each new node to the old node that it replaces.
	Was map[fabric.GUID]fabric.GUID `json:"was,omitempty"`

	// Bound has, by index in Links, one route's part of the bound in percent.
	Bound  []float64 `json:"bound,omitempty"`
	Cables string    `json:"show,omitempty"` // what cables show first

	// Counters describe the arrays counter0, counter1 and so on, which have their values by
	// port.
	Counters []Counter `json:"counters,omitempty"`

	// Groupings have the groups that the user can close to boxes; array grouping0 has, by
	// node, the index of its group in the first grouping, -1 for none.
	Groupings []documentGrouping `json:"groupings,omitempty"`

	Groups []documentGroup `json:"groups"`
	Rules  []documentRule  `json:"rules"`  // of the findings
	Causes []string        `json:"causes"` // their texts, the most harmful first
	Result *verify.Result  `json:"result"`

	Arrays []array `json:"arrays"`
}

// documentGroup is an MLID. Its ports, senders and receivers are consecutive parts of the
// array members.
type documentGroup struct {
	Name   string `json:"name"`
	MGID   string `json:"mgid,omitempty"`
	MLID   int    `json:"mlid"`
	Scheme string `json:"scheme,omitempty"`
	SL     int    `json:"sl"`
	Counts [3]int `json:"counts"` // ports in masks, senders, receivers
}

// documentGrouping has the names of a grouping and its groups.
type documentGrouping struct {
	Name   string   `json:"name"`
	Groups []string `json:"groups"`
}

type documentRule struct {
	Name    string `json:"name"`
	Summary string `json:"summary"`
	Explain string `json:"explain"`
}

// aggregationType is the type of aggregation nodes in array type.
const aggregationType = 4

// array describes a part of the binary data: little-endian numbers.
type array struct {
	Name string `json:"name"`
	Type string `json:"type"` // "u8", "u16", "i32" or "f32"
	At   int    `json:"at"`   // offset in bytes, a multiple of 4
	Len  int    `json:"len"`  // in numbers
}

// packer collects arrays.
type packer struct {
	arrays []array
	data   []byte
}

func (p *packer) begin(name, kind string, n int) {
	for len(p.data)%4 != 0 {
		p.data = append(p.data, 0)
	}
	p.arrays = append(p.arrays, array{name, kind, len(p.data), n})
}

// pack adds an array of n numbers.
func pack[T uint8 | uint16 | int32 | float32](p *packer, name string, n int, at func(i int) T) {
	list := make([]T, n)
	for i := range list {
		list[i] = at(i)
	}
	packList(p, name, list)
}

// packList adds a list as an array.
func packList[T uint8 | uint16 | int32 | float32](p *packer, name string, list []T) {
	var zero T
	p.begin(name, map[any]string{uint8(0): "u8", uint16(0): "u16", int32(0): "i32", float32(0): "f32"}[zero], len(list))
	p.data, _ = binary.Append(p.data, binary.LittleEndian, list) // no error: sizes are fixed
}

// Write writes the page: one HTML file that loads nothing else. Errors: parts of in that do
// not fit together, a *RequestError, ctx's, and those of w.
func Write(ctx context.Context, w io.Writer, in *Input) error {
	old, s, err := scenes(ctx, in)
	if err != nil {
		return err
	}
	if in.Cables != "" {
		if _, err := s.chooseMeasure(); err != nil {
			return err
		}
	}
	return s.write(ctx, w, old)
}

// Update returns the document and arrays for a page that already shows these nodes, with
// other cables or tables: without places, which stay, and without the arrays of Map.
func Update(ctx context.Context, in *Input) (document, data []byte, err error) {
	s, err := unplaced(ctx, in)
	if err != nil {
		return nil, nil, err
	}
	p := new(packer)
	doc := s.document(p)
	doc.Arrays = p.arrays
	document, err = json.Marshal(doc)
	return text.PrintableJSON(document), p.data, err
}

// Map returns what Update leaves out: a document with the arrays of the leaf-to-leaf map (see
// heat), none if there is no map.
func Map(ctx context.Context, in *Input) (text, data []byte, err error) {
	s, err := unplaced(ctx, in)
	if err != nil {
		return nil, nil, err
	}
	p := &packer{arrays: []array{}}
	if err := s.packHeat(ctx, p); err != nil {
		return nil, nil, err
	}
	text, err = json.Marshal(map[string][]array{"arrays": p.arrays})
	return text, p.data, err
}

// unplaced returns a scene whose nodes have no places.
func unplaced(ctx context.Context, in *Input) (*scene, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	l := new(layout)
	l.join(in.Fabric)
	return load(ctx, in, l)
}

// writeData writes the document and the arrays as scripts, whose ids end in the
// text behind.
func (s *scene) writeData(ctx context.Context, b *bytes.Buffer, behind string) error {
	p := new(packer)
	doc := s.document(p)
	if err := s.packHeat(ctx, p); err != nil {
		return err
	}
	doc.Arrays = p.arrays
	document, err := json.Marshal(doc)
	if err != nil {
		return err
	}
	writeGzip(b, "document"+behind, text.PrintableJSON(document))
	writeGzip(b, "arrays"+behind, p.data)
	return nil
}

// write fills in the template; old is nil if there is only one state.
func (s *scene) write(ctx context.Context, w io.Writer, old *scene) error {
	policy := ""
	var data, compiler, script bytes.Buffer
	err := s.writeData(ctx, &data, "")
	if err == nil && old != nil {
		err = old.writeData(ctx, &data, "-old")
	}
	if err != nil {
		return err
	}
	parts := slices.Clone(scripts)
	if s.Base != nil {
		policy = " blob: 'wasm-unsafe-eval'; worker-src blob:"
		parts = append(parts, "trial.js")
		writeGzip(&compiler, "tables", s.Base)
		compiler.WriteString("<script type=\"application/gzip\" id=\"compiler\">")
		writeSevens(&compiler, s.Compiler)
		fmt.Fprintf(&compiler, "</script>\n<script type=\"text/plain\" id=\"worker\">\n%s</script>\n", asset("worker.js"))
	}
	if old != nil {
		parts = append(parts, "states.js")
	}
	for _, name := range parts {
		script.WriteString(asset(name))
	}
	_, err = strings.NewReplacer("{{title}}", html.EscapeString(fabric.Printable(s.Title)), "{{style}}", asset("page.css"), "{{policy}}", policy,
		"{{compiler}}", compiler.String(), "{{data}}", data.String(), "{{script}}", script.String()).WriteString(w, asset("page.html"))
	return err
}

// writeSevens appends data as text, 7 bits in a character: one byte each, except three values
// that HTML would change, which get 128 added and take two bytes. base64 would take an eighth
// more.
func writeSevens(b *bytes.Buffer, data []byte) {
	held, n := uint32(0), 0
	write := func(value uint32) {
		if value == 0 || value == '\r' || value == '<' {
			value += 128
		}
		b.WriteRune(rune(value))
	}
	for _, x := range data {
		held = held<<8 | uint32(x)
		for n += 8; n >= 7; {
			n -= 7
			write(held >> n & 127)
		}
	}
	if n > 0 {
		write(held << (7 - n) & 127)
	}
}

// asset returns an embedded file.
func asset(name string) string {
	data, err := assets.ReadFile("assets/" + name)
	if err != nil {
		panic(err) // a missing file fails every test
	}
	return string(data)
}

// writeGzip appends data as a script with this id: gzip in base64. A write to b never fails.
func writeGzip(b *bytes.Buffer, id string, data []byte) {
	fmt.Fprintf(b, `<script type="application/gzip" id="%s">`, id)
	encoder := base64.NewEncoder(base64.StdEncoding, b)
	z := gzip.NewWriter(encoder)
	_, _ = z.Write(data)
	_ = z.Close()
	_ = encoder.Close()
	b.WriteString("</script>\n")
}

// packLabels packs the labels of ports.
func (s *scene) packLabels(d *document, p *packer) {
	f := s.Fabric
	var labels numbered[string]
	labels.number("")
	pack(p, "label", f.NumPorts(), func(i int) int32 {
		return int32(labels.number(strings.ToValidUTF8(f.Label(fabric.PortID(i)), "\uFFFD")))
	})
	d.Labels = labels.list
}

// document packs everything except the leaf-to-leaf map.
func (s *scene) document(p *packer) *document {
	f := s.Fabric
	d := &document{
		Title: s.Title, Version: s.Version, Shape: s.Shape, Layout: s.kind, Switches: f.NumSwitches(), Interactive: s.Base != nil, Counters: s.Counters,
		Names: make([]string, f.NumNodes()), GUIDs: make([]fabric.GUID, f.NumNodes()),
		Tables: "none", Max: s.max, Mean: s.mean, Result: s.Result,
		Groups: []documentGroup{}, Rules: []documentRule{}, Links: []string{}, State: s.Name, Cables: s.Cables,
	}
	if s.within != nil {
		left, top, right, bottom := s.box()
		d.Box = []float64{left, top, right, bottom}
	}
	if s.Old != nil {
		d.Changes, d.Summary, d.Was = s.Old.Changes, s.Old.Summary, make(map[fabric.GUID]fabric.GUID)
		for old, now := range s.Old.Replaced {
			d.Was[now] = old
		}
	}
	for _, n := range f.Nodes() {
		d.Names[n] = strings.ToValidUTF8(f.Name(n).Label(), "\uFFFD")
		d.GUIDs[n] = f.Node(n).GUID
	}
	d.Causes = text.Each(s.Result.Causes, func(c verify.Cause) string { return c.Text })
	broken := make(map[string]bool)
	for i := range s.Result.Findings {
		broken[s.Result.Findings[i].Rule] = true
	}
	for _, r := range s.Rules {
		if broken[r.Name] {
			d.Rules = append(d.Rules, documentRule{r.Name, r.Summary, strings.TrimSpace(r.Explain)})
		}
	}

	ports := f.NumPorts()
	pack(p, "base", f.NumNodes()+1, func(i int) int32 {
		if i == f.NumNodes() {
			return int32(ports)
		}
		return int32(f.PortBase(fabric.NodeID(i)))
	})
	pack(p, "type", f.NumNodes(), func(i int) uint8 {
		if f.Kind(fabric.NodeID(i)) == fabric.AggregationKind {
			return aggregationType
		}
		return uint8(f.Node(fabric.NodeID(i)).Type)
	})
	pack(p, "peer", ports, func(i int) int32 { return int32(f.Peer(fabric.PortID(i))) })
	var links numbered[fabric.Link]
	pack(p, "link", ports, func(i int) uint8 { return uint8(links.number(f.Link(fabric.PortID(i)))) })
	times := s.boundTimes()
	for _, l := range links.list {
		d.Links = append(d.Links, l.String())
		if times != nil {
			d.Bound = append(d.Bound, times[l])
		}
	}
	if f.Labelled() {
		s.packLabels(d, p)
	}
	pack(p, "lid", ports, func(i int) uint16 { return uint16(f.LID(fabric.PortID(i))) })
	pack(p, "lmc", ports, func(i int) uint8 { return f.LMC(fabric.PortID(i)) })
	packList(p, "x", s.x)
	packList(p, "y", s.y)
	packList(p, "radius", s.radius)
	pack(p, "edgeA", len(s.edges), func(i int) int32 { return int32(s.edges[i].a) })
	pack(p, "edgeB", len(s.edges), func(i int) int32 { return int32(s.edges[i].b) })
	pack(p, "edgeBend", len(s.edges), func(i int) float32 { return s.edges[i].bend })
	pack(p, "edgeCables", len(s.edges)+1, func(i int) int32 {
		if i == len(s.edges) {
			return int32(len(s.cables))
		}
		return s.edges[i].cables
	})
	pack(p, "cables", len(s.cables), func(i int) int32 { return int32(s.cables[i]) })
	if s.Tables != nil {
		pack(p, "routes", ports, func(i int) int32 { return int32(min(s.routes[i], math.MaxInt32)) })
		d.Tables = s.packTables(p)
	}
	for i, c := range s.Counters {
		pack(p, fmt.Sprintf("counter%d", i), len(c.Values), func(k int) float32 { return float32(c.Values[k]) })
	}
	s.packGroups(d, p)
	s.packGroupings(d, p)
	return d
}

// Entries returns how many entries of forwarding tables the page would have; entries of PLFTs
// count as two each.
func (in *Input) Entries() int64 {
	entries := int64(len(in.lids())) * int64(in.Fabric.NumSwitches())
	if in.Adaptive != nil {
		entries += 2 * entries * int64(len(in.Adaptive.PLFTs)) // two bytes each
	}
	return entries
}

// packTables adds the forwarding tables for the LIDs in use, and the tables for virtual
// lanes. It returns "here", or the reason why they are left out.
func (s *scene) packTables(p *packer) string {
	f := s.Fabric
	lids, limit := s.lids(), cmp.Or(s.MaxEntries, DefaultMaxEntries)
	entries, all, slots := int64(len(lids))*int64(f.NumSwitches()), s.Entries(), int64(0)
	if s.SL2VL != nil {
		for n := range fabric.NodeID(f.NumNodes()) {
			slots += int64(s.waysIn(n)) * (int64(f.Node(n).NumPorts) + 1)
		}
	}
	switch {
	case all > limit:
		return fmt.Sprintf("they have %d entries, more than the %d that a page may hold", all, limit)
	case slots > limit:
		return fmt.Sprintf("the SL-to-VL tables have %d entries, more than the %d that a page may hold", slots, limit)
	}
	pack(p, "lids", len(lids), func(i int) uint16 { return uint16(lids[i]) })
	p.begin("lft", "u8", int(entries))
	p.data = slices.Grow(p.data, int(entries))
	for _, sw := range f.Switches() {
		row := s.Tables.Row(sw)
		for _, l := range lids {
			p.data = append(p.data, uint8(row[l]))
		}
	}
	if s.Adaptive != nil {
		if why := s.packChoices(p, lids); why != "" {
			return why
		}
	}
	if sls := s.PathSLs; sls != nil {
		// Switches share rows.
		var first numbered[*fabric.SL]
		var rows [][]fabric.SL
		pack(p, "slRow", f.NumSwitches(), func(i int) int32 {
			row := sls.Row(fabric.NodeID(i))
			k := first.number(&row[0])
			if k == len(rows) {
				rows = append(rows, row)
			}
			return int32(k)
		})
		p.begin("sls", "u8", len(rows)*len(lids))
		for _, row := range rows {
			for _, l := range lids {
				p.data = append(p.data, uint8(row[l]))
			}
		}
	}
	if s.SL2VL != nil {
		maps := s.SL2VL.Maps()
		pack(p, "vlMaps", len(maps)*lft.NumSLs, func(i int) uint8 { return uint8(maps[i/lft.NumSLs][i%lft.NumSLs]) })
		starts := make([]int32, f.NumPorts())
		at := int32(0)
		for port := range starts {
			starts[port] = at
			at += int32(s.waysIn(f.Owner(fabric.PortID(port))))
		}
		packList(p, "vlStart", starts)
		var index []uint16
		for port := range fabric.PortID(f.NumPorts()) {
			for in := range s.waysIn(f.Owner(port)) {
				index = append(index, s.SL2VL.Index(fabric.PortNum(in), port))
			}
		}
		packList(p, "vlIndex", index)
	}
	return "here"
}

// packChoices adds the sets of ports by which packets may leave: by PLFT, switch and LID the
// number of a set, 0 for none; and by input port and SL a packet's PLFT. It returns "", or
// why it cannot.
func (s *scene) packChoices(p *packer, lids []fabric.LID) string {
	f, t := s.Fabric, s.Adaptive
	var sets numbered[adaptive.PortSet]
	sets.number(adaptive.PortSet{})
	choices := make([]uint16, 0, len(t.PLFTs)*f.NumSwitches()*len(lids))
	for plft := range t.PLFTs {
		for sw := range fabric.NodeID(f.NumSwitches()) {
			for _, l := range lids {
				k := sets.number(s.choices(plft, sw, l))
				if k > math.MaxUint16 {
					return fmt.Sprintf("they have more than %d different choices", math.MaxUint16)
				}
				choices = append(choices, uint16(k))
			}
		}
	}
	packList(p, "choice", choices)
	p.begin("sets", "u8", 32*len(sets.list)) // a bit for each port
	for _, set := range sets.list {
		p.data, _ = binary.Append(p.data, binary.LittleEndian, set)
	}
	if t.Select == nil || len(t.PLFTs) == 1 {
		return ""
	}
	pack(p, "plft", f.NumPorts()*lft.NumSLs, func(i int) uint8 {
		port := fabric.PortID(i / lft.NumSLs)
		if s := f.Owner(port); f.IsSwitch(s) {
			return t.Select.Row(s, f.Num(port))[i%lft.NumSLs]
		}
		return 0
	})
	return ""
}

// packHeat adds the leaf-to-leaf map, if there is one.
func (s *scene) packHeat(ctx context.Context, p *packer) error {
	h, err := s.heat(ctx)
	if h == nil || err != nil {
		return err
	}
	pack(p, "heatLeaf", len(h.leaves), func(i int) int32 { return int32(h.leaves[i]) })
	packList(p, "heatLoad", h.load)
	packList(p, "heatHops", h.hops)
	packList(p, "heatPaths", h.paths)
	packList(p, "heatLost", h.lost)
	packList(p, "heatLIDs", h.lids)
	return nil
}

// waysIn returns how many SL-to-VL maps each output port of a node has.
func (s *scene) waysIn(n fabric.NodeID) int {
	if s.Fabric.IsSwitch(n) {
		return int(s.Fabric.Node(n).NumPorts) + 1
	}
	return 1
}

// packGroups adds the multicast groups and their masks.
func (s *scene) packGroups(d *document, p *packer) {
	var members []fabric.PortID
	for _, g := range s.groups() {
		ports := s.Multicast.Tables.Ports(g.MLID)
		x := documentGroup{
			Name: strings.ToValidUTF8(g.Name, "\uFFFD"), MLID: int(g.MLID), Scheme: g.Scheme, SL: int(g.SL),
			Counts: [3]int{len(ports), len(g.Senders), len(g.Receivers)},
		}
		if g.MGID.IsValid() {
			x.MGID = g.MGID.String()
		}
		d.Groups = append(d.Groups, x)
		members = append(append(append(members, ports...), g.Senders...), g.Receivers...)
	}
	pack(p, "members", len(members), func(i int) int32 { return int32(members[i]) })
}

// packGroupings adds the groups that the user can close.
func (s *scene) packGroupings(d *document, p *packer) {
	for i, g := range s.groupings {
		names := text.Each(g.Groups, func(x Group) string { return strings.ToValidUTF8(x.Name, "\uFFFD") })
		d.Groupings = append(d.Groupings, documentGrouping{g.Name, names})
		packList(p, fmt.Sprintf("grouping%d", i), g.of(s.Fabric.NumNodes()))
	}
}
