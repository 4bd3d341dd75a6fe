package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/compile/outdir"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/topology"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mft"
	"github.com/ibweave/ibweave/sminterface/dump"
	"github.com/ibweave/ibweave/verify"
)

// whole is a complete input: tables with errors of any kind, and what they refer to.
type whole struct {
	*lft.Routing
	plan    *mft.Plan // nil without groups
	changed []entry
}

// entry is a place in the forwarding tables.
type entry struct {
	at  fabric.NodeID
	lid fabric.LID
}

var wholeFabrics = []string{
	"mesh --dims 3x3", "mesh --dims 4 --hosts 2", "torus --dims 3x4", "torus --dims 5 --hosts 2", "torus --dims 4x2",
	"hypercube --dim 3", "fattree --radix 4", "fattree --radix 4 --levels 3", "shufflenet --p 2 --k 2",
	"banyan --stages 2", "myrinet4", "lattice --switches 8 --seed 3", "irregular --switches 8 --degree 3 --hosts 12 --seed 5",
}

// anyWhole makes tables of an engine on a fabric of any kind, and changes some of them.
func anyWhole(t *rapid.T, fabrics map[string]*fabric.Fabric) (*whole, *compile.Result) {
	f := fabrics[rapid.SampledFrom(wholeFabrics).Draw(t, "fabric")]
	opt := compile.Options{LIDs: lft.LIDOptions{LMC: rapid.SampledFrom([]int{0, 0, 1, 2}).Draw(t, "LMC")}}
	if rapid.Bool().Draw(t, "multicast") {
		opt.Multicast = rapid.SampledFrom([]string{"union", "union-merge", "updn-tree", "opensm"}).Draw(t, "scheme")
		opt.Groups = func(f *fabric.Fabric) (groups []mft.Group, err error) {
			for i := range rapid.IntRange(1, 3).Draw(t, "groups") {
				g := mft.Group{Name: fmt.Sprint("group ", i)}
				g.Receivers = anyPorts(t, f.CAPorts(), "receivers")
				if g.Senders = g.Receivers; rapid.Bool().Draw(t, "apart") {
					g.Senders = anyPorts(t, f.CAPorts(), "senders")
				}
				groups = append(groups, g)
			}
			return groups, nil
		}
	}
	name := rapid.SampledFrom([]string{"minhop", "updn", "xy", "layered"}).Draw(t, "engine")
	var r *compile.Result
	for _, name := range []string{name, "updn"} {
		e, err := compile.EngineByName(name)
		short.Check(t, err)
		r, err = compile.Run(t.Context(), f, e, opt)
		var outside *lft.DomainError
		var group *compile.GroupError
		if errors.As(err, &outside) {
			continue
		}
		if errors.As(err, &group) {
			opt.Multicast = "opensm"
			r, err = compile.Run(t.Context(), f, e, opt)
		}
		if err != nil {
			t.Fatal(err)
		}
		break
	}
	w := &whole{Routing: r.Routing, plan: r.Plan}
	f = w.Fabric
	if w.SL2VL == nil {
		switch rapid.IntRange(0, 2).Draw(t, "lanes") {
		case 0: // rows that are missing are taken for VL 0
			w.SL2VL = lft.NewSL2VL(f, lft.ConstantVL(1))
		case 1:
			w.SL2VL = lft.NewSL2VL(f, lft.IdentityVLs(2))
		}
	}
	if w.SL2VL != nil && w.PathSLs == nil {
		w.PathSLs = lft.NewPathSLs(f.NumSwitches(), f.MaxLID())
		row := slices.Repeat([]fabric.SL{fabric.SL(rapid.IntRange(0, 1).Draw(t, "SL"))}, int(f.MaxLID())+1)
		for s := range fabric.NodeID(f.NumSwitches()) {
			w.PathSLs.SetRow(row, s)
		}
	}
	switchOf := func() fabric.NodeID { return fabric.NodeID(rapid.IntRange(0, f.NumSwitches()-1).Draw(t, "switch")) }
	for range rapid.SampledFrom([]int{0, 1, 1, 1, 2}).Draw(t, "changes") {
		s := switchOf()
		switch kind := rapid.IntRange(0, 7).Draw(t, "change"); {
		case kind <= 1 && w.SL2VL != nil:
			ways := [][2]int{}
			for in, out := range w.SL2VL.PortPairs() {
				if kind == 0 || !f.IsSwitch(f.Owner(out)) { // any, or that of a sender
					ways = append(ways, [2]int{int(in), int(out)})
				}
			}
			way := rapid.SampledFrom(ways).Draw(t, "way")
			m := *w.SL2VL.At(fabric.PortNum(way[0]), fabric.PortID(way[1]))
			m[rapid.IntRange(0, 3).Draw(t, "SL")] = rapid.SampledFrom([]fabric.VL{0, 1, lft.DropVL}).Draw(t, "VL")
			w.SL2VL.Set(fabric.PortNum(way[0]), fabric.PortID(way[1]), m)
		case kind == 2 && w.SL2VL != nil:
			row := slices.Clone(w.PathSLs.Row(s))
			for range 3 {
				row[rapid.IntRange(1, int(f.MaxLID())).Draw(t, "LID")] = fabric.SL(rapid.IntRange(0, 2).Draw(t, "SL"))
			}
			if rapid.Bool().Draw(t, "of a port") {
				w.PathSLs.SetPorts(row, rapid.SampledFrom(f.CAPorts()).Draw(t, "source"))
			} else {
				w.PathSLs.SetRow(row, s)
			}
		case kind == 3 && w.plan != nil && len(w.plan.Tables.MLIDs()) > 0:
			w.changeMask(t)
		case kind == 4: // to and fro
			lid := fabric.LID(rapid.IntRange(1, int(f.MaxLID())).Draw(t, "LID"))
			ports, _ := f.SwitchLinks(s)
			p := rapid.SampledFrom(ports).Draw(t, "cable")
			w.change(s, lid, f.Num(p))
			w.change(f.Owner(f.Peer(p)), lid, f.Num(f.Peer(p)))
		default:
			lid := fabric.LID(rapid.IntRange(1, int(f.MaxLID())).Draw(t, "LID"))
			w.change(s, lid, rapid.SampledFrom([]fabric.PortNum{0, 1, 2, f.Node(s).NumPorts, fabric.NoPath}).Draw(t, "port"))
		}
	}
	return w, r
}

// change gives a LID that a port has another entry.
func (w *whole) change(s fabric.NodeID, lid fabric.LID, port fabric.PortNum) {
	if w.Fabric.LIDPort(lid) != fabric.NoPort {
		w.Tables.Row(s)[lid] = port
		w.changed = append(w.changed, entry{s, lid})
	}
}

func anyPorts(t *rapid.T, from []fabric.PortID, label string) []fabric.PortID {
	list := rapid.SliceOfNDistinct(rapid.SampledFrom(from), 2, min(5, len(from)), rapid.ID).Draw(t, label)
	slices.Sort(list)
	return list
}

// changeMask puts a port of a switch into the mask of an MLID, or takes it out of one.
func (w *whole) changeMask(t *rapid.T) {
	changed := mft.NewTables(w.Fabric)
	mlids := w.plan.Tables.MLIDs()
	at := rapid.IntRange(0, len(mlids)-1).Draw(t, "MLID")
	for i, mlid := range mlids {
		ports := slices.Clone(w.plan.Tables.PortsAt(i))
		if i == at {
			s := w.Fabric.Owner(rapid.SampledFrom(ports).Draw(t, "at"))
			num := rapid.IntRange(1, int(w.Fabric.Node(s).NumPorts)).Draw(t, "port")
			p := w.Fabric.PortBase(s) + fabric.PortID(num)
			if k, ok := slices.BinarySearch(ports, p); ok {
				ports = slices.Delete(ports, k, k+1)
			} else {
				ports = slices.Insert(ports, k, p)
			}
		}
		if len(ports) > 0 {
			changed.Add(mlid, ports)
		}
	}
	w.plan.Tables = changed
}

// text is what a writer writes.
func textOf(t *rapid.T, write func(io.Writer) error) string {
	var b strings.Builder
	short.Check(t, write(&b))
	return b.String()
}

// piece is a file of an input: its flag, a form, and how the sections of that form begin.
type piece struct {
	flag, form, text string
	begins           *regexp.Regexp // nil without sections
}

// asIBRoute is opensm-lfts.dump as ibroute prints it: the rows of a section are counted.
func asIBRoute(text string) piece {
	var b strings.Builder
	high, rows := 0, 0
	for line := range strings.Lines(text) {
		switch _, err := fmt.Sscanf(line, "Unicast lids [0-%d]", &high); {
		case err == nil:
			line, rows = strings.Replace(line, fmt.Sprintf("[0-%d]", high), fmt.Sprintf("[0x0-%#x]", high), 1), 0
		case strings.HasSuffix(line, " lids dumped\n"):
			line = fmt.Sprintf("%d valid lids dumped \n", rows)
		default:
			rows++
		}
		b.WriteString(line)
	}
	return piece{form: "ibroute", text: b.String(), begins: regexp.MustCompile("(?m)^Unicast lids ")}
}

// mapsOfQuery is SL-to-VL tables as smpquery prints them, for each output port.
func mapsOfQuery(s *lft.SL2VL) piece {
	f := s.Fabric()
	var query strings.Builder
	for p := range fabric.PortID(f.NumPorts()) {
		node, end := f.Owner(p), p
		inputs, out := fabric.PortNum(1), fabric.PortNum(0)
		if f.IsSwitch(node) {
			inputs, out, end = f.Node(node).NumPorts+1, f.Num(p), f.PortBase(node)
		}
		if f.Peer(p) == fabric.NoPort || f.LID(end) == 0 {
			continue
		}
		fmt.Fprintf(&query, "# SL2VL table: Lid %d\n", f.LID(end))
		for in := range inputs {
			fmt.Fprintf(&query, "ports: in %2d, out %2d: |", in, out)
			for _, v := range s.At(in, p) {
				fmt.Fprintf(&query, "%2d|", v)
			}
			query.WriteByte('\n')
		}
	}
	return piece{form: "smpquery", text: query.String(), begins: regexp.MustCompile("(?m)^# SL2VL table")}
}

// pieces writes an input. Only says that forms which cannot tell all are left out.
func (w *whole) pieces(t *rapid.T, complete bool) (list []*piece) {
	f := w.Fabric
	add := func(flag string, forms ...piece) {
		p := rapid.SampledFrom(forms).Draw(t, flag)
		p.flag = flag
		list = append(list, &p)
	}
	form := func(name, begins string, write func(io.Writer) error) piece {
		p := piece{form: name, text: textOf(t, write)}
		if begins != "" {
			p.begins = regexp.MustCompile("(?m)^" + begins)
		}
		return p
	}
	forms := []piece{form("ibnetdiscover", "", func(b io.Writer) error { return topology.Write(b, f) })}
	lmc := slices.ContainsFunc(f.CAPorts(), func(p fabric.PortID) bool { return f.LMC(p) > 0 })
	if !complete || !lmc {
		forms = append(forms, form("subnet.lst", "", func(b io.Writer) error { return dump.WriteSubnetList(b, f) }))
	}
	add("-t", forms...)
	opt := dump.WriteOptions{Lean: rapid.Bool().Draw(t, "lean")}
	lfts := form("opensm-lfts.dump", "Unicast lids ", func(b io.Writer) error { return dump.WriteLFTs(b, f, w.Tables, opt) })
	add("--lfts", lfts, asIBRoute(lfts.text),
		form("opensm.fdbs", "dump_ucast_routes: ", func(b io.Writer) error { return dump.WriteFDBs(b, f, w.Tables, opt) }))
	if w.SL2VL != nil {
		add("--sl2vl", mapsOfQuery(w.SL2VL),
			form("opensm-sl2vl.dump", "(Switch|Channel Adapter|Router) ", func(b io.Writer) error { return dump.WriteSL2VL(b, w.SL2VL, opt) }))
	}
	if w.SL2VL != nil && w.PathSLs != nil {
		forms := []piece{form("path-sls.dump", "switch ", func(b io.Writer) error { return dump.WritePathSLs(b, f, w.PathSLs, opt) })}
		var b bytes.Buffer // the form cannot tell paths of switches, nor all tables
		if !complete && dump.WriteIBDMPathSLs(&b, f, w.PathSLs) == nil {
			forms = append(forms, piece{form: "ibdmchk", text: b.String()})
		}
		add("--path-sl", forms...)
	}
	if w.plan != nil {
		add("--mfts",
			form("opensm.mcfdbs", "Switch 0x", func(b io.Writer) error { return dump.WriteMCFDBs(b, w.plan.Tables, opt) }),
			form("dump_mfts", "Multicast mlids ", func(b io.Writer) error { return dump.WriteMFTs(b, w.plan.Tables, opt, 0) }))
		add("-g", form("groups.json", "", func(b io.Writer) error {
			data, err := mft.AppendGroupsJSON(nil, f, w.plan.Trees)
			if err == nil {
				_, err = b.Write(data)
			}
			return err
		}))
	}
	return list
}

// auditPieces runs check on files that flags name, and gives its result, nil when it refuses the input.
func auditPieces(t *rapid.T, dir string, list []*piece, flags ...string) (*verify.Result, string) {
	for _, p := range list {
		name := filepath.Join(dir, strings.Trim(p.flag, "-"))
		short.Check(t, os.WriteFile(name, []byte(p.text), 0o666))
		flags = append(flags, p.flag, name)
	}
	return auditArgs(t, flags...)
}

// auditArgs runs check, and gives its result, nil when it refuses the input.
func auditArgs(t *rapid.T, args ...string) (*verify.Result, string) {
	args = append([]string{"check", "--format", "json", "--fail-on", "note"}, args...)
	var out, errs bytes.Buffer
	status := run(args, strings.NewReader(""), &out, &errs)
	if status == exitInput || status == exitUsage || status == exitEnvironment {
		return nil, errs.String()
	}
	var r verify.Result
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatalf("exit status %d, %v, %s", status, err, &errs)
	}
	if clean := len(r.Findings)+len(r.Undecided) == 0; clean != (status == exitClean) {
		t.Fatalf("exit status %d of verdict %s", status, r.Verdict)
	}
	return &r, errs.String()
}

// leaveOut takes something out of an input that the rest refers to, and says what.
func (w *whole) leaveOut(t *rapid.T, list []*piece) string {
	f := w.Fabric
	at := rapid.SampledFrom(list).Draw(t, "piece")
	switch at.flag {
	case "-t":
		n := fabric.NodeID(rapid.IntRange(0, f.NumNodes()-1).Draw(t, "node"))
		if !w.refers(n) {
			return ""
		}
		at.text = withoutNode(at.text, f.Node(n).GUID)
		return fmt.Sprintf("%s of the topology", f.Node(n).Description)
	case "-g":
		var groups []map[string]any
		short.Check(t, json.Unmarshal([]byte(at.text), &groups))
		if len(groups) == 0 || len(w.plan.Tables.MLIDs()) == 0 {
			return ""
		}
		mlid := rapid.SampledFrom(w.plan.Tables.MLIDs()).Draw(t, "MLID")
		groups = slices.DeleteFunc(groups, func(g map[string]any) bool { return g["mlid"] == float64(mlid) })
		data := short.Must(json.Marshal(groups))(t)
		at.text = string(data)
		return fmt.Sprintf("groups of MLID %#x", uint16(mlid))
	}
	lines := strings.SplitAfter(at.text, "\n")
	lines = lines[:len(lines)-1]
	if len(lines) == 0 {
		return ""
	}
	begins := []int{}
	for i, line := range lines {
		if at.begins != nil && at.begins.MatchString(line) {
			begins = append(begins, i)
		}
	}
	from := rapid.IntRange(0, len(lines)-1).Draw(t, "line")
	to := from + 1
	switch how := rapid.IntRange(0, 4).Draw(t, "how"); {
	case how == 4 && at.flag == "--lfts" && len(w.changed) > 0: // a row that may be of a cycle
		e := rapid.SampledFrom(w.changed).Draw(t, "row")
		from = slices.IndexFunc(lines, func(line string) bool {
			return at.begins.MatchString(line) && strings.Contains(line, f.Node(e.at).GUID.String()[2:])
		})
		row := fmt.Sprintf("0x%04x ", e.lid)
		n := slices.IndexFunc(lines[from:], func(line string) bool { return strings.HasPrefix(strings.ToLower(line), row) })
		if n < 0 {
			return ""
		}
		from += n
		to = from + 1
	case how == 0: // cut
		at.text = strings.Join(lines[:from], "")
		if rapid.Bool().Draw(t, "within a line") {
			at.text += lines[from][:rapid.IntRange(1, len(lines[from])).Draw(t, "bytes")]
		}
		return fmt.Sprintf("%s %s from line %d on", at.flag, at.form, from+1)
	case how == 1 && len(begins) > 0: // a section
		i := rapid.IntRange(0, len(begins)-1).Draw(t, "section")
		from, to = begins[i], len(lines)
		if i+1 < len(begins) {
			to = begins[i+1]
		}
	case slices.Contains(begins, from):
		return ""
	default:
		for to < len(lines) && to < from+5 && !slices.Contains(begins, to) && rapid.Bool().Draw(t, "more") {
			to++
		}
	}
	at.text = strings.Join(slices.Delete(lines, from, to), "")
	return fmt.Sprintf("%s %s lines %d to %d", at.flag, at.form, from+1, to)
}

// refers returns true if the tables have an entry of a LID of a node.
func (w *whole) refers(n fabric.NodeID) bool {
	for lid := fabric.LID(1); lid <= w.Fabric.MaxLID(); lid++ {
		if p := w.Fabric.LIDPort(lid); p == fabric.NoPort || w.Fabric.Owner(p) != n {
			continue
		}
		for s := range fabric.NodeID(w.Fabric.NumSwitches()) {
			if s != n && w.Tables.Row(s)[lid] <= w.Fabric.Node(s).NumPorts {
				return true
			}
		}
	}
	return false
}

// withoutNode takes a node out of a topology, its stanza and its cables.
func withoutNode(text string, guid fabric.GUID) string {
	hex := strings.TrimPrefix(guid.String(), "0x")
	var b strings.Builder
	for stanza := range strings.SplitSeq(text, "\n\n") {
		if regexp.MustCompile(`(?m)^(Switch|Ca|Rt)\t.* "[SHR]-` + hex + `"`).MatchString(stanza) {
			continue
		}
		for line := range strings.Lines(stanza) {
			if !strings.Contains(line, "-"+hex+`"`) && !strings.Contains(line, "NodeGUID:"+hex) {
				b.WriteString(line)
			}
		}
		b.WriteString("\n\n")
	}
	return b.String()
}

// open lists the rules that a complete input leaves undecided.
func (w *whole) open(list []*piece) (rules []string) {
	lfts := slices.IndexFunc(list, func(p *piece) bool { return p.flag == "--lfts" })
	if list[lfts].form == "opensm-lfts.dump" && w.hasGap() {
		rules = append(rules, verify.ManagementLoop, verify.ManagementCreditLoop)
	}
	if w.plan != nil && w.hasMaskGap() {
		rules = append(rules, verify.MulticastRules...)
	}
	slices.Sort(rules)
	return slices.Compact(rules)
}

// hasGap returns true if an entry leads to a switch that has none for the LID.
func (w *whole) hasGap() bool {
	f := w.Fabric
	for s := range fabric.NodeID(f.NumSwitches()) {
		for lid, port := range w.Tables.Row(s) {
			if port == fabric.ManagementPort || port > f.Node(s).NumPorts || f.LIDPort(fabric.LID(lid)) == fabric.NoPort {
				continue
			}
			if peer := f.Peer(f.Port(s, port)); peer != fabric.NoPort && f.IsSwitch(f.Owner(peer)) && w.Tables.Row(f.Owner(peer))[lid] == fabric.NoPath {
				return true
			}
		}
	}
	return false
}

// hasMaskGap returns true if a mask leads to a switch that has none for the MLID.
func (w *whole) hasMaskGap() bool {
	f := w.Fabric
	for i := range w.plan.Tables.MLIDs() {
		ports := w.plan.Tables.PortsAt(i)
		for _, p := range ports {
			peer := f.Peer(p)
			if peer == fabric.NoPort || !f.IsSwitch(f.Owner(peer)) {
				continue
			}
			if !slices.ContainsFunc(ports, func(q fabric.PortID) bool { return f.Owner(q) == f.Owner(peer) }) {
				return true
			}
		}
	}
	return false
}

// fileInput is an input of several files, as flags, a folder of dumps or a compiled directory.
type fileInput struct {
	args  []string            // without those of files
	files []string            // paths
	flags []string            // by file, "" in a folder
	lost  map[string][]string // by flag or name of a file: rules that are not asked for without it
}

func (in *fileInput) audit(t *rapid.T) (*verify.Result, string) {
	args := slices.Clone(in.args)
	for i, flag := range in.flags {
		if flag != "" {
			args = append(args, flag, in.files[i])
		}
	}
	return auditArgs(t, args...)
}

// anyFiles writes w as an input of several files, into folders of dir.
func (w *whole) anyFiles(t *rapid.T, dir string, r *compile.Result) *fileInput {
	dir = filepath.Join(dir, "files")
	short.Check(t, errors.Join(os.RemoveAll(dir), os.Mkdir(dir, 0o777)))
	in := &fileInput{lost: map[string][]string{}}
	// Without SL-to-VL tables everything is on one VL, and without multicast tables or
	// groups there is no question about them. Path SLs ask for SL-to-VL tables.
	if w.PathSLs == nil {
		in.lost["--sl2vl"] = append(slices.Clone(verify.LaneRules), verify.MulticastMissing, verify.MulticastCreditLoop)
	}
	in.lost["--mfts"], in.lost["-g"] = verify.MulticastRules, verify.MulticastRules
	kind := rapid.SampledFrom([]string{"flags", "folder", "compiled"}).Draw(t, "kind")
	if kind == "compiled" {
		in.args = []string{filepath.Join(dir, "tables")}
		changed := &compile.Result{Engine: r.Engine, Routing: w.Routing, Plan: w.plan, Verify: r.Verify}
		names := short.Must(outdir.Write(t.Context(), in.args[0], changed, outdir.Options{InstallDir: "/tables", Force: true}))(t)
		for _, name := range names {
			in.files, in.flags = append(in.files, filepath.Join(in.args[0], name)), append(in.flags, "")
		}
		// A folder of dumps has groups in the form of saquery, and no certificate: one that
		// no longer holds is an error of what compile wrote, also where tables are sound.
		in.lost[filepath.Join(in.args[0], outdir.ManifestName)] = append(slices.Clone(verify.MulticastRules), verify.CertificateRule)
		return in
	}
	for _, p := range w.pieces(t, true) {
		if kind == "folder" && p.flag == "-g" {
			continue
		}
		name := filepath.Join(dir, strings.Trim(p.flag, "-"))
		short.Check(t, os.WriteFile(name, []byte(p.text), 0o666))
		flag := p.flag
		if kind == "folder" {
			in.lost[name], flag = in.lost[flag], ""
		}
		in.files, in.flags = append(in.files, name), append(in.flags, flag)
	}
	if kind == "folder" {
		in.args = []string{dir}
	}
	return in
}

// withoutFile audits an input of several files, and again without one of them. It says
// which that is, and which rules are not asked for then.
func (w *whole) withoutFile(t *rapid.T, dir string, r *compile.Result) (all, part *verify.Result, what string, lost []string) {
	in := w.anyFiles(t, dir, r)
	all, errs := in.audit(t)
	if all == nil {
		t.Fatalf("a complete input is refused: %s", errs)
	}
	i := rapid.IntRange(0, len(in.files)-1).Draw(t, "file")
	short.Check(t, os.Remove(in.files[i]))
	what, lost = strings.TrimSpace(in.flags[i]+" "+filepath.Base(in.files[i])), in.lost[cmp.Or(in.flags[i], in.files[i])]
	in.files, in.flags = slices.Delete(in.files, i, i+1), slices.Delete(in.flags, i, i+1)
	part, _ = in.audit(t)
	return all, part, what, lost
}

// TestIncomplete leaves something out of inputs: where the whole has errors, no part of
// it is clean or has warnings only. That goes for a row of opensm-lfts.dump, too, which
// has none where there is no path: the row of a cycle that is lost is one to which the
// entries before it lead. Rows to which none leads are on no cycle.
//
// A complete input is undecided only where it looks like a part: where an entry
// of opensm-lfts.dump leads to a switch without a row for the LID, and where a mask leads to
// a switch without a mask. It has path SLs with SL-to-VL tables.
func TestIncomplete(t *testing.T) {
	fabrics := map[string]*fabric.Fabric{}
	for _, kind := range wholeFabrics {
		var out, errs bytes.Buffer
		if status := run(append([]string{"gen"}, strings.Fields(kind)...), strings.NewReader(""), &out, &errs); status != exitClean {
			t.Fatalf("gen %s: %s", kind, &errs)
		}
		f, _ := short.Must2(topology.Parse(kind, out.Bytes(), topology.Options{}))(t)
		fabrics[kind] = f
	}
	dir := t.TempDir()
	verdicts := map[string]int{}
	hidden := map[string]int{} // errors of the whole that do not show in a part, by rule
	rapid.Check(t, func(t *rapid.T) {
		w, r := anyWhole(t, fabrics)
		list := w.pieces(t, true)
		all, errs := auditPieces(t, dir, list)
		if all == nil {
			t.Fatalf("a complete input is refused: %s", errs)
		}
		var undecided []string
		for _, u := range all.Undecided {
			undecided = append(undecided, u.Rule)
		}
		slices.Sort(undecided)
		if d := gocmp.Diff(w.open(list), slices.Compact(undecided)); d != "" {
			t.Fatalf("a complete input leaves undecided: %+v\n%s", all.Undecided, d)
		}
		if all.Verdict != verify.VerdictErrors {
			return
		}
		// judge wants errors of the whole not to vanish from a part. Rules in lost may.
		judge := func(all, part *verify.Result, what string, lost []string) {
			if part == nil {
				verdicts["refused"]++
				return
			}
			var rules []string
			for _, f := range all.Findings {
				if f.Severity == verify.Error && !slices.Contains(lost, f.Rule) {
					rules = append(rules, f.Rule+": "+f.Message)
				}
			}
			if len(rules) == 0 {
				return
			}
			verdicts[part.Verdict]++
			switch part.Verdict {
			case verify.VerdictUndecided:
				for _, f := range all.Findings {
					if f.Severity == verify.Error {
						hidden[f.Rule]++
					}
				}
			case verify.VerdictClean, verify.VerdictWarnings:
				t.Fatalf("without %s the verdict is %s; the whole has\n%s", what, part.Verdict, strings.Join(rules, "\n"))
			}
		}
		for range 5 {
			list := w.pieces(t, false)
			what := w.leaveOut(t, list)
			if what == "" {
				continue
			}
			var flags []string
			if rapid.Bool().Draw(t, "lenient") {
				flags = []string{"--lenient"}
			}
			part, _ := auditPieces(t, dir, list, flags...)
			judge(all, part, fmt.Sprintf("%s %v", what, flags), nil)
		}
		for range 3 {
			judge(w.withoutFile(t, dir, r))
		}
	})
	t.Log(verdicts, hidden)
	for _, v := range short.Of([]string{"refused", verify.VerdictErrors, verify.VerdictUndecided}, []string{"refused"}) {
		if verdicts[v] == 0 {
			t.Errorf("no part is %s", v)
		}
	}
}
