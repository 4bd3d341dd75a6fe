//go:build !wasm

package page

import (
	"cmp"
	"context"
	"fmt"
	"image/color"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/names"
	"github.com/ibweave/ibweave/mft"
)

// View is what a picture shows; see ParseView.
type View struct {
	kind string
	arg  string // after the colon; "" for none
}

var viewForm = regexp.MustCompile(`^(?s:fabric|credit-loop(:[1-9][0-9]{0,8})?|path:.*,.*|(fan|group):.+)$`)

// ParseView reads "fabric", "path:SRC,DST", "fan:DST", "group:NAME", "credit-loop" or
// "credit-loop:2".
func ParseView(s string) (View, error) {
	if !viewForm.MatchString(s) {
		return View{}, fmt.Errorf("%q: want fabric, path:SRC,DST, fan:DST, group:NAME, credit-loop or credit-loop:N from 1 on", s)
	}
	kind, arg, _ := strings.Cut(s, ":")
	return View{kind, arg}, nil
}

// Picture is a drawing of one view.
type Picture struct {
	*scene
	title string
	shows *measure // what cables show; nil for nothing
	// lines below the drawing describe the view step by step.
	lines    []string
	channels []fabric.PortID           // shown, by the ports that they leave
	shares   map[fabric.PortID]float64 // by channel: its width, 0 to 1; 1 if missing
	marks    map[fabric.NodeID]color.Color
	labels   []fabric.NodeID
	tone     color.Color // of the channels
	faults   []fault
}

func rgb(v uint32) color.NRGBA {
	return color.NRGBA{uint8(v >> 16), uint8(v >> 8), uint8(v), 0xff}
}

// Colours, as in page.css and view.js. ramp has those of loads.
var (
	ground, ink, muted         = rgb(0xfbfbfa), rgb(0x1c2430), rgb(0x5d6878)
	nodeTone, hostTone, unused = rgb(0x33445a), rgb(0x8a97a8), rgb(0xb6bcc5)
	pathTone, loopTone         = rgb(0x0b6bcb), rgb(0xc62a1e)
	treeTone, warning          = rgb(0x0d7f5f), rgb(0x9a6100)
	ramp                       = []color.NRGBA{rgb(0xc8d0da), rgb(0x9db9d3), rgb(0x5f9ac4), rgb(0x2f7fae), rgb(0xe0a32e), rgb(0xe2701f), rgb(0xc62a1e)}
)

// Draw prepares the picture of a view. Errors are those of Write, and a *RequestError for the
// view.
func Draw(ctx context.Context, in *Input, view View) (*Picture, error) {
	_, s, err := scenes(ctx, in)
	if err != nil {
		return nil, err
	}
	p := &Picture{scene: s, title: in.Title, marks: map[fabric.NodeID]color.Color{}}
	if p.shows, err = s.chooseMeasure(); err != nil {
		return nil, err
	}
	switch view.kind {
	case "path":
		err = p.showPath(view.arg)
	case "fan":
		err = p.showFan(view.arg)
	case "group":
		err = p.showGroup(view.arg)
	case "credit-loop":
		err = p.showLoop(view.arg)
	default:
		c := s.Result.Fabric
		p.lines = append(p.lines, fmt.Sprintf("%d switches, %d CA ports, %d links", c.Switches, c.CAPorts, c.Links))
		if s.Shape != "" {
			p.lines[0] += "; " + strings.SplitN(s.Shape, "\n", 2)[0]
		}
		p.markFaults()
	}
	if err != nil && ctx.Err() == nil {
		err = &RequestError{"view", err}
	}
	if err != nil {
		return nil, err
	}
	return p, nil
}

// showPath marks the path between two hosts. Their names may have commas, so it tries each
// comma.
func (p *Picture) showPath(arg string) error {
	if p.Tables == nil {
		return fmt.Errorf("there are no forwarding tables")
	}
	var found [][2]fabric.PortID
	var trouble error // of the last pair with a known source, else of the first
	for i, c := range arg {
		if c != ',' {
			continue
		}
		a, err := p.endPort(strings.TrimSpace(arg[:i]))
		known, b := err == nil, fabric.NoPort
		if known && p.Fabric.IsSwitch(p.Fabric.Owner(a)) {
			err = fmt.Errorf("%s is a switch: a path starts at a host", p.Fabric.Name(p.Fabric.Owner(a)))
		}
		if err == nil {
			b, err = p.endPort(strings.TrimSpace(arg[i+1:]))
		}
		switch {
		case err == nil:
			found = append(found, [2]fabric.PortID{a, b})
		case known || trouble == nil:
			trouble = err
		}
	}
	switch len(found) {
	case 0:
		return trouble
	case 1:
	default:
		return fmt.Errorf("%q can be read as more than one pair; use GUIDs or LIDs", arg)
	}
	src, dst := found[0][0], found[0][1]
	f := p.Fabric
	lid := f.LID(dst)
	path := p.Path(src, lid)
	a, b := f.Name(f.Owner(src)).Label(), f.Name(f.Owner(dst)).Label()
	p.title = fmt.Sprintf("%s: path from %s to %s, LID %d", p.title, a, b, lid)
	p.tone = pathTone
	p.marks[f.Owner(src)], p.marks[f.Owner(dst)] = pathTone, pathTone
	p.labels = append(p.labels, f.Owner(src))
	p.shares = make(map[fabric.PortID]float64)
	for _, h := range path.Merged() {
		p.channels = append(p.channels, h.Out)
		p.shares[h.Out] = min(1, p.shares[h.Out]+h.Share)
		p.labels = append(p.labels, f.Owner(f.Peer(h.Out)))
		line := fmt.Sprintf("%s to %s, VL %d", f.PortName(h.Out), f.PortName(f.Peer(h.Out)), h.VL)
		if h.Share < 0.9995 {
			line += fmt.Sprintf(", %.1f %% of packets", 100*h.Share)
		}
		p.lines = append(p.lines, line)
	}
	if path.Lost != "" {
		p.tone = loopTone
		p.lines = append(p.lines, "lost: "+path.Lost)
	}
	return nil
}

// showFan marks the ports by which switches may send to a destination.
func (p *Picture) showFan(name string) error {
	if p.Tables == nil {
		return fmt.Errorf("there are no forwarding tables")
	}
	dst, err := p.endPort(strings.TrimSpace(name))
	if err != nil {
		return err
	}
	f, lid := p.Fabric, p.Fabric.LID(dst)
	fan := p.Fan(lid)
	p.title = fmt.Sprintf("%s: all ways to %s, LID %d", p.title, f.Name(f.Owner(dst)).Label(), lid)
	p.tone = pathTone
	p.shares = make(map[fabric.PortID]float64)
	with, switches := 0, 0
	for s, outs := range fan.bySwitch(f) {
		var ports []string
		for _, out := range outs {
			p.channels = append(p.channels, out)
			p.shares[out] = 1 / float64(len(outs))
			ports = append(ports, f.PortText(out))
		}
		if f.IsSwitch(s) {
			p.marks[s] = nodeTone
			switches++
		}
		if len(outs) > 1 {
			with++
			p.lines = append(p.lines, fmt.Sprintf("%s: ports %s", f.Name(s).Label(), strings.Join(ports, ", ")))
		}
	}
	p.marks[f.Owner(dst)] = pathTone
	p.labels = append(p.labels, f.Owner(dst))
	p.lines = slices.Insert(p.lines, 0, fmt.Sprintf("%d of %d switches have a choice of ports", with, switches))
	if fan.Lost > 0 {
		p.lines = slices.Insert(p.lines, 1, fmt.Sprintf("packets are lost at %d places; the first: %s", fan.Lost, fan.Why))
	}
	return nil
}

// fault is a cable that a finding calls missing or slow.
type fault struct {
	curve   bezier
	missing bool
}

// markFaults marks the cables that findings call missing or slow.
func (p *Picture) markFaults() {
	missing, slow := int64(0), 0
	for i := range p.Result.Findings {
		x := &p.Result.Findings[i]
		gone := x.Rule == "missing-cable"
		if !gone && x.Rule != "link-degraded" || x.Waiver != nil || len(x.Ports) == 0 {
			continue
		}
		if gone {
			missing += x.Count
		} else {
			slow++
		}
		// Ports of one node come first, then as many of the other: all these cables are one
		// line.
		a, known := p.nodeWith(x.Ports[0].Node)
		b, both := p.nodeWith(x.Ports[len(x.Ports)-1].Node)
		if known && both {
			p.faults = append(p.faults, fault{p.between(a, b), gone})
		}
	}
	if missing > 0 || slow > 0 {
		p.lines = append(p.lines, fmt.Sprintf("missing cables: %d, dashed with a cross; slow ones: %d, amber", missing, slow))
	}
}

// nodeWith returns the node with a GUID, a switch if there is one.
func (p *Picture) nodeWith(guid fabric.GUID) (fabric.NodeID, bool) {
	if s, ok := p.Fabric.SwitchByGUID(guid); ok {
		return s, true
	}
	return p.Fabric.NodeByGUID(guid)
}

// endPort finds a port by its LID or GUID, or by a name that names.Find resolves to one node.
func (p *Picture) endPort(text string) (fabric.PortID, error) {
	f := p.Fabric
	if n, err := strconv.ParseUint(text, 10, 16); err == nil {
		if at := f.LIDPort(fabric.LID(n)); at != fabric.NoPort {
			return at, nil
		}
		return 0, fmt.Errorf("no port has LID %d", n)
	}
	if guid, err := fabric.ParseGUID(text); err == nil {
		if i := slices.IndexFunc(f.CAPorts(), func(at fabric.PortID) bool { return f.PortGUID(at) == guid }); i >= 0 {
			return f.CAPorts()[i], nil
		}
	}
	nodes, err := names.Find(f, text)
	switch {
	case err != nil:
		return 0, err
	case len(nodes) > 1:
		return 0, fmt.Errorf("%d nodes are called %q; use a GUID or LID", len(nodes), text)
	case f.IsSwitch(nodes[0]):
		return f.PortBase(nodes[0]), nil
	}
	for at := range f.Cabled(nodes[0]) {
		if f.LID(at) != 0 {
			return at, nil
		}
	}
	return 0, fmt.Errorf("%s has no port with a LID and a cable", f.Name(nodes[0]))
}

// showGroup marks the masks of a group.
func (p *Picture) showGroup(name string) error {
	groups := p.groups()
	if p.Multicast == nil {
		return fmt.Errorf("there are no multicast tables")
	}
	i := slices.IndexFunc(groups, func(t mft.Tree) bool {
		return t.Name == name || fmt.Sprintf("%#x", uint16(t.MLID)) == strings.ToLower(name)
	})
	if i < 0 {
		return fmt.Errorf("no group is called %q", name)
	}
	f, g := p.Fabric, groups[i]
	p.tone = treeTone
	for _, out := range p.Multicast.Tables.Ports(g.MLID) {
		p.marks[f.Owner(out)] = nodeTone
		if f.Num(out) != fabric.ManagementPort && f.Peer(out) != fabric.NoPort {
			p.channels = append(p.channels, out)
		}
	}
	for _, r := range g.Receivers {
		p.marks[f.Owner(r)] = treeTone
		p.labels = append(p.labels, f.Owner(r))
	}
	if len(g.Senders) < len(g.Receivers) {
		for _, s := range g.Senders {
			p.marks[f.Owner(s)] = pathTone
			p.labels = append(p.labels, f.Owner(s))
			if f.Peer(s) != fabric.NoPort {
				p.channels = append(p.channels, s)
			}
		}
	}
	p.title = fmt.Sprintf("%s: multicast group %s", p.title, g.Name)
	p.lines = append(p.lines, fmt.Sprintf("MLID %#x; senders: %d, receivers: %d, ports in masks: %d",
		uint16(g.MLID), len(g.Senders), len(g.Receivers), len(p.Multicast.Tables.Ports(g.MLID))))
	return nil
}

// showLoop marks credit loop number arg, the first for "".
func (p *Picture) showLoop(arg string) error {
	n, err := strconv.Atoi(cmp.Or(arg, "1"))
	n--
	if err != nil {
		return err
	}
	cycles := p.Result.CreditLoops.Cycles
	if n >= len(cycles) {
		return fmt.Errorf("there is no such credit loop: %d are known", len(cycles))
	}
	f := p.Fabric
	p.tone = loopTone
	p.title = fmt.Sprintf("%s: credit loop of %d channels", p.title, len(cycles[n]))
	for i, h := range cycles[n] {
		s, ok := f.SwitchByGUID(h.Switch)
		if !ok || h.Port > f.Node(s).NumPorts {
			return fmt.Errorf("the fabric has no %s", h)
		}
		p.channels = append(p.channels, f.Port(s, h.Port))
		p.marks[s] = loopTone
		p.labels = append(p.labels, s)
		next := cycles[n][(i+1)%len(cycles[n])]
		p.lines = append(p.lines, fmt.Sprintf("%s VL %d: a packet to %s waits for %s", h, h.VL, h.Target(), next))
	}
	return nil
}
