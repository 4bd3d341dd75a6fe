package dump

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/topology"
	"github.com/ibweave/ibweave/lft"
)

// WriteIBDMPathSLs writes path SLs as ibdmchk -c reads them: a line for each source node
// and DLID of another port, with the source's node GUID, the DLID and the SL. Each
// pair of CA or router ports has some 25 bytes. Sources are in OpenSM's
// order, DLIDs ascend.
//
// Paths whose SL is not known have no lines. Paths from and to switches, which ibdmchk
// -a follows, have no lines either: ibdmchk uses the SL of a switch's own packets as
// their VL on the first hop, and crashes when the tables have no such VL.
//
// Errors are those of w, path SLs of another fabric, and a CA whose ports are on
// switches with different SLs, since the format has one SL for all ports of a node. In
// the last two cases nothing has been written.
func WriteIBDMPathSLs(w io.Writer, f *fabric.Fabric, p *lft.PathSLs) error {
	if err := lft.CheckFabric(f, nil, nil, p); err != nil {
		return err
	}
	type source struct {
		node fabric.NodeID
		row  []fabric.SL
		own  fabric.PortID // its LIDs get no line; NoPort if the node has several ports
	}
	var sources []source
	index := make([]int32, f.NumNodes()) // 1 + index in sources
	for i, port := range f.CAPorts() {
		n, s := f.Owner(port), f.CASwitches()[i]
		switch {
		case s == fabric.NoNode:
		case index[n] == 0:
			sources = append(sources, source{n, rowFrom(p, port, s), port})
			index[n] = int32(len(sources))
		default:
			src, row := &sources[index[n]-1], rowFrom(p, port, s)
			if l := differentSL(f, src.row, row); l > 0 {
				return fmt.Errorf("%s has SL %d to LID %d and another port of the node has SL %d: ibdmchk has one SL for all ports of a node",
					f.PortName(port), row[l], l, src.row[l])
			}
			src.own = fabric.NoPort
		}
	}
	slices.SortFunc(sources, func(a, b source) int { return compareGUIDs(f.Node(a.node).GUID, f.Node(b.node).GUID) })
	var dlids []fabric.LID
	for l := 1; l <= int(min(p.MaxLID(), f.MaxLID())); l++ {
		if q := f.LIDPort(fabric.LID(l)); q != fabric.NoPort && !f.IsSwitch(f.Owner(q)) {
			dlids = append(dlids, fabric.LID(l))
		}
	}
	return writeInOrder(w, len(sources), func(i int, b []byte) []byte {
		src := &sources[i]
		head := f.Node(src.node).GUID.String() + " "
		for _, l := range dlids {
			if f.LIDPort(l) == src.own || src.row[l] == lft.UnknownSL {
				continue
			}
			b = append(b, head...)
			b = strconv.AppendUint(b, uint64(l), 10)
			b = append(b, ' ')
			b = strconv.AppendUint(b, uint64(src.row[l]), 10)
			b = append(b, '\n')
		}
		return b
	})
}

// rowFrom returns the SLs of paths from a port on switch s.
func rowFrom(p *lft.PathSLs, port fabric.PortID, s fabric.NodeID) []fabric.SL {
	if row := p.PortRow(port); row != nil {
		return row
	}
	return p.Given(s)
}

// differentSL returns the lowest LID with an owner for which two rows have
// different SLs, 0 for none.
func differentSL(f *fabric.Fabric, a, b []fabric.SL) fabric.LID {
	for l := 1; l < len(a); l++ {
		if a[l] != b[l] && f.LIDPort(fabric.LID(l)) != fabric.NoPort {
			return fabric.LID(l)
		}
	}
	return 0
}

// pathPairReader reads path SLs in the format of ibdmchk, one line per source node and DLID.
type pathPairReader struct {
	textReader
	f      *fabric.Fabric
	rows   map[fabric.PortID][]fabric.SL // by source port: UnknownSL if no line gives one
	source fabric.GUID                   // of the previous line
	from   []fabric.PortID               // ports of source where paths begin
}

func readPathPairs(text textReader, f *fabric.Fabric) (*lft.PathSLs, []fabric.Problem, error) {
	r := &pathPairReader{textReader: text, f: f, rows: make(map[fabric.PortID][]fabric.SL)}
	r.eachPathLine(r.readLine)
	if !r.failed {
		r.findMissing()
	}
	return finish(&r.textReader, lft.PathSLsFrom(f, r.rows))
}

var errIBDMPath = errors.New("want a source's node GUID, a DLID and an SL, all but the GUID in decimal: 0x0123456789abcdef 6 1")

// readLine reads a line: source, DLID and SL.
func (r *pathPairReader) readLine(_ int, line []byte) error {
	guid, dlid, sl, ok := parsePair(line)
	if !ok {
		return errIBDMPath
	}
	if guid != r.source || len(r.from) == 0 {
		if r.source, r.from = guid, r.portsOf(guid); len(r.from) == 0 {
			return fmt.Errorf("the fabric has no node %s on a switch", guid)
		}
	}
	return r.addPath(dlid, sl)
}

// parsePair reads GUID, DLID and SL in a line of ibdmchk
// -c. Like ibdmchk, it ignores what follows them.
func parsePair(line []byte) (guid fabric.GUID, dlid uint64, sl int, ok bool) {
	s := topology.Line{Text: line}
	guid = s.GUID()
	s.Blanks()
	dlid = uint64(s.Decimal(9))
	s.Blanks()
	sl = s.Decimal(3)
	return guid, dlid, sl, s.AtWordEnd()
}

// portsOf lists the ports where a node's paths begin: port 0 of a switch, or the ports
// of a CA or router that are cabled to switches.
func (r *pathPairReader) portsOf(guid fabric.GUID) []fabric.PortID {
	n, known := r.f.NodeByGUID(guid)
	if !known {
		return nil
	}
	if r.f.IsSwitch(n) {
		return []fabric.PortID{r.f.PortBase(n)}
	}
	var list []fabric.PortID
	for p := fabric.PortNum(1); p <= r.f.Node(n).NumPorts; p++ {
		if port := r.f.Port(n, p); r.f.PeerSwitch(port) != fabric.NoNode {
			list = append(list, port)
		}
	}
	return list
}

// addPath sets the SL of the paths from the ports r.from to a LID.
func (r *pathPairReader) addPath(dlid uint64, sl int) error {
	switch {
	case dlid > uint64(r.f.MaxLID()) || r.f.LIDPort(fabric.LID(dlid)) == fabric.NoPort:
		return fmt.Errorf("no port of the fabric has LID %d", dlid)
	case sl >= lft.NumSLs:
		return fmt.Errorf("SL %d, want 0 to %d", sl, lft.NumSLs-1)
	}
	for _, port := range r.from {
		row := r.rows[port]
		if row == nil {
			row = unknownRow(r.f.MaxLID())
			r.rows[port] = row
		}
		if was := row[dlid]; was != lft.UnknownSL && was != fabric.SL(sl) {
			return fmt.Errorf("SL %d from %s to LID %d, which has SL %d already", sl, r.f.PortName(port), dlid, was)
		}
		row[dlid] = fabric.SL(sl)
	}
	return nil
}

// findMissing notes how many paths between CA or router ports have no line.
func (r *pathPairReader) findMissing() {
	f := r.f
	missing, from, to := 0, fabric.NoPort, fabric.LID(0)
	for _, port := range f.CAPorts() {
		if f.PeerSwitch(port) == fabric.NoNode {
			continue
		}
		row := r.rows[port]
		for l := fabric.LID(1); l <= f.MaxLID(); l++ {
			if row != nil && row[l] != lft.UnknownSL {
				continue
			}
			if q := f.LIDPort(l); q == fabric.NoPort || q == port || f.IsSwitch(f.Owner(q)) {
				continue
			}
			if missing == 0 {
				from, to = port, l
			}
			missing++
		}
	}
	if missing == 0 {
		return
	}
	what := "1 path between CA or router ports,"
	if missing > 1 {
		what = fmt.Sprintf("%d paths between CA and router ports, the first", missing)
	}
	r.add(-1, fabric.Missing, fmt.Errorf("no SL for %s from %s to LID %d", what, f.PortName(from), to))
}
