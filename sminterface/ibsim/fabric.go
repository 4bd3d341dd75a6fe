package ibsim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/topology"
	"github.com/ibweave/ibweave/internal/graph"
)

// Twin is a copy of a fabric that ibsim can simulate. Switches keep their GUIDs
// and NodeIDs, and all ports their LIDs, so tables are the same in both, by
// switch and LID. Other things differ where ibsim has limits:
//
//   - Port p of a CA or router gets the node's GUID plus p. Captures of
//     real fabrics mostly have port GUIDs that equal the node's.
//   - Where that would give a GUID to two ports, the later CA gets a GUID of
//     its own, from 0x1b51000000000000 on.
//   - Descriptions lose characters that ibsim's reader trips over, and are cut.
//   - Nodes without ports have one.
//   - Widths and speeds that ibsim lacks become the nearest that it has.
type Twin struct {
	Fabric *fabric.Fabric
	guids  map[fabric.GUID]fabric.GUID // port GUIDs, old to new
	taken  map[fabric.GUID]struct{}    // port GUIDs of Fabric
}

// DataVLs is the number of data VLs of ibsim's ports.
const DataVLs = 8

// firstSpare is the first GUID for CAs that cannot keep theirs.
const firstSpare fabric.GUID = 0x1b51000000000000

// NewTwin makes the fabric that ibsim can simulate instead of f. It is an
// error if two ports of f have one GUID; OpenSM would not run on that either.
func NewTwin(f *fabric.Fabric) (*Twin, error) {
	t := &Twin{guids: make(map[fabric.GUID]fabric.GUID), taken: make(map[fabric.GUID]struct{})}
	nodeGUIDs := make(map[fabric.GUID]struct{}, f.NumNodes())
	for n := range fabric.NodeID(f.NumNodes()) {
		nodeGUIDs[f.Node(n).GUID] = struct{}{}
	}
	spare := firstSpare
	var b fabric.Builder
	for n := range fabric.NodeID(f.NumNodes()) {
		node := *f.Node(n)
		node.Description = describe(node.Description)
		node.NumPorts = max(1, node.NumPorts) // ibsim stops reading at a node without any
		if !f.IsSwitch(n) && !t.free(node.GUID, node.NumPorts) {
			node.GUID = t.nextSpare(spare, nodeGUIDs, node.NumPorts)
			spare = node.GUID + 256
		}
		if _, err := b.AddNode(node); err != nil {
			return nil, err
		}
		if err := t.addPorts(&b, f, n, node.GUID); err != nil {
			return nil, err
		}
	}
	for p := range fabric.PortID(f.NumPorts()) {
		q := f.Peer(p)
		if q == fabric.NoPort || q < p {
			continue
		}
		if err := b.Connect(int(f.Owner(p)), f.Num(p), int(f.Owner(q)), f.Num(q), nearest(f, p, q)); err != nil {
			return nil, err
		}
	}
	var err error
	t.Fabric, err = b.Build()
	if err != nil {
		return nil, err
	}
	return t, nil
}

// nextSpare returns a GUID for a CA, from spare on: no node has
// it, and the CA's ports get GUIDs that no port has yet.
func (t *Twin) nextSpare(spare fabric.GUID, nodes map[fabric.GUID]struct{}, ports fabric.PortNum) fabric.GUID {
	for ; ; spare += 256 {
		if _, used := nodes[spare]; !used && t.free(spare, ports) {
			return spare
		}
	}
}

// addPorts gives the end ports of node n their GUIDs in ibsim, where node is the GUID of n.
func (t *Twin) addPorts(b *fabric.Builder, f *fabric.Fabric, n fabric.NodeID, node fabric.GUID) error {
	first, last := fabric.PortNum(1), f.Node(n).NumPorts
	if f.IsSwitch(n) {
		first, last = 0, 0
	}
	for p := first; p <= last; p++ { // at most 254
		at := f.Port(n, p)
		old, guid := f.PortGUID(at), node+fabric.GUID(p)
		if _, dup := t.guids[old]; dup {
			return fmt.Errorf("port GUID %s is on two ports, one of them %s: OpenSM does not start on such a fabric", old, f.PortName(at))
		}
		t.guids[old] = guid
		t.taken[guid] = struct{}{}
		if err := b.SetPort(int(n), p, guid, f.LID(at), f.LMC(at)); err != nil {
			return err
		}
	}
	return nil
}

// free returns true if a CA with this GUID gets port GUIDs that no port has yet.
func (t *Twin) free(node fabric.GUID, ports fabric.PortNum) bool {
	if node == 0 || node+fabric.GUID(ports) < node {
		return false
	}
	for p := range fabric.GUID(ports) {
		if _, taken := t.taken[node+p+1]; taken {
			return false
		}
	}
	return true
}

// Has reports whether g is the GUID of an end port of the original fabric.
func (t *Twin) Has(g fabric.GUID) bool {
	_, has := t.guids[g]
	return has
}

// PortGUID returns the twin's GUID of the port that has GUID g in the
// original. If no port has g, it returns a GUID that no port of the twin has.
func (t *Twin) PortGUID(g fabric.GUID) fabric.GUID {
	if twin, known := t.guids[g]; known {
		return twin
	}
	for {
		if _, taken := t.taken[g]; !taken {
			return g
		}
		g += firstSpare
	}
}

// Same returns true if all ports have the same GUIDs as in the original fabric.
func (t *Twin) Same() bool {
	for old, guid := range t.guids {
		if old != guid {
			return false
		}
	}
	return true
}

// WithLIDs returns the twin with other LIDs, as fabric.WithLIDs does.
func (t *Twin) WithLIDs(base []fabric.LID, lmc []uint8) (*Twin, error) {
	f, err := t.Fabric.WithLIDs(base, lmc)
	if err != nil {
		return nil, err
	}
	return &Twin{Fabric: f, guids: t.guids, taken: t.taken}, nil
}

// maxDescription keeps lines short enough for ibsim, which reads 254 bytes at
// a time.
const maxDescription = 48

// describe replaces characters that ibsim treats specially: it looks for options
// (w=4) behind any =, ends a description at a quote, and keeps # and @ for itself.
func describe(s string) string {
	b := []byte(s[:min(len(s), maxDescription)])
	for i, c := range b {
		if c < ' ' || c > '~' || c == '"' || c == '=' || c == '#' || c == '@' || c == '\'' {
			b[i] = '_'
		}
	}
	return string(b)
}

// nearest returns the link that ibsim 0.10 can have instead of the one
// between ports p and q. ibsim does not read the links of a router's ports,
// takes them for 4x SDR, and exits if the other end does not allow that.
func nearest(f *fabric.Fabric, p, q fabric.PortID) fabric.Link {
	l := f.Link(p)
	if f.Node(f.Owner(p)).Type == fabric.Router || f.Node(f.Owner(q)).Type == fabric.Router {
		return fabric.Link{Width: 4, Speed: fabric.SDR}
	}
	switch l.Width {
	case 1, 4, 8, 12:
	default:
		l.Width = 4
	}
	switch {
	case l.Speed == fabric.SpeedUnknown:
		l.Speed = fabric.QDR
	case l.Speed > fabric.HDR:
		l.Speed = fabric.HDR
	}
	return l
}

// NodeID returns the id of a node of the twin in ibsim, which is that of
// package topology.
func (t *Twin) NodeID(n fabric.NodeID) string {
	return string(topology.AppendID(nil, t.Fabric.Node(n)))
}

// Centre returns the switch that OpenSM and the other programs are
// attached to: in the largest connected part of the fabric, the middle of
// a longest shortest path, as two breadth-first searches find it.
// Directed routes have at most 63 links (IBA 14.2.2), and from the middle
// they reach farthest. It is NoNode for a fabric without switches.
func Centre(f *fabric.Fabric) fabric.NodeID {
	search := graph.NewSearch[fabric.NodeID](f.NumSwitches())
	start, most := fabric.NoNode, 0
	for _, s := range f.Switches() {
		if search.Reached(s) {
			continue
		}
		before := len(search.Order)
		search.Extend(f.Neighbors, s)
		if n := len(search.Order) - before; n > most {
			start, most = s, n
		}
	}
	if start == fabric.NoNode {
		return start
	}
	search.Run(f.Neighbors, start)
	end := search.Order[len(search.Order)-1]
	search.Run(f.Neighbors, end)
	path := search.Path(search.Order[len(search.Order)-1])
	return path[(len(path)-1)/2]
}

// ErrNoSwitch means that a fabric has no switch, so that there is nothing for
// OpenSM to route.
var ErrNoSwitch = errors.New("the fabric has no switch")

// StartTwin writes the twin to a file and starts ibsim on it, with room
// for exactly this fabric. Clients are attached to its Centre, or to
// cfg.Host if that is set. Errors are ErrNoSwitch and those of Start.
func StartTwin(ctx context.Context, t *Twin, cfg Config) (*Sim, error) {
	f := t.Fabric
	if cfg.Host == "" {
		centre := Centre(f)
		if centre == fabric.NoNode {
			return nil, ErrNoSwitch
		}
		cfg.Host = t.NodeID(centre)
	}
	// ibsim's ports are those of all nodes, and port 0 of each switch.
	ports := f.NumPorts() - (f.NumNodes() - f.NumSwitches())
	cfg.Nodes, cfg.Switches, cfg.Ports = f.NumNodes(), f.NumSwitches(), ports
	// ibsim finds the other end of each cable by comparing the ids
	// of all nodes: some 10 ns each.
	cfg.Timeout = cmp.Or(cfg.Timeout, time.Minute+time.Duration(f.NumNodes())*time.Duration(f.NumLinks())*100*time.Nanosecond)
	file, err := os.CreateTemp("", "ibweave-*.ibnetdiscover")
	if err != nil {
		return nil, err
	}
	defer os.Remove(file.Name())
	if err := errors.Join(topology.Write(file, f), file.Close()); err != nil {
		return nil, err
	}
	return Start(ctx, file.Name(), cfg)
}
