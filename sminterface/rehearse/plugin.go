package rehearse

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/files"
	"github.com/ibweave/ibweave/internal/par"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mft"
	"github.com/ibweave/ibweave/sminterface/dump"
	"github.com/ibweave/ibweave/sminterface/ibsim"
	"github.com/ibweave/ibweave/sminterface/mad"
	"github.com/ibweave/ibweave/sminterface/subnet"
)

// Via is the way in which OpenSM gets the tables.
type Via string

// The values of Via.
const (
	ViaFile   Via = "file"   // with its file engine
	ViaPlugin Via = "plugin" // with our plugin
)

// PluginName is OpenSM's name of the plugin (event_plugin_name), and LibraryName
// the file that OpenSM loads by that name.
const (
	PluginName  = "ibweave-opensm"
	LibraryName = "lib" + PluginName + ".so"
)

// enginePrefix begins OpenSM's names of the plugin's engines.
const enginePrefix = "ibweave-"

// PluginOptions are what RunPlugin rehearses, in addition to forwarding tables.
type PluginOptions struct {
	// Options.Dir is only the source of guid2lid.
	Options
	// Library is the plugin, a file of any name. "" stands for
	// LibraryName, beside this program or where OpenSM finds it.
	Library string
	// Engine is our name of the engine: "xy".
	Engine string
	// Config returns the plugin's configuration. groups is the value for
	// multicast.groups, "" for none.
	Config func(groups string) ([]byte, error)
	// MFT has the multicast tables of Trees; nil for none.
	MFT   *mft.Tables
	Trees []mft.Tree
}

// MaskDifference is a mask that differs: the ports by which a switch sends
// packets to a group.
type MaskDifference struct {
	Group  string     `json:"group"`          // "" for an MLID that none of our groups has
	MGID   string     `json:"mgid,omitempty"` // likewise
	MLID   fabric.LID `json:"mlid"`           // that OpenSM gave to the group
	Switch Switch     `json:"switch"`
	Ours   []int      `json:"ours"` // ascending
	OpenSM []int      `json:"opensm"`
	// Labels has the labels of the ports of Switch.
	Labels fabric.PortLabels `json:"labels,omitempty"`
}

// String returns the group, the switch and both masks.
func (d MaskDifference) String() string {
	group := fmt.Sprintf("%q (%s)", d.Group, d.MGID)
	if d.MGID == "" {
		group = "none of ours"
	}
	return fmt.Sprintf("group %s, MLID %#x, %q (%s): %s, OpenSM has %s", group, uint16(d.MLID), d.Switch.Name.Text, d.Switch.GUID, maskText(d.Ours, d.Labels), maskText(d.OpenSM, d.Labels))
}

func maskText(ports []int, labels fabric.PortLabels) string {
	switch list := strings.Join(labels.Texts(ports), ","); len(ports) {
	case 0:
		return "no port"
	case 1:
		return "port " + list
	default:
		return "ports " + list
	}
}

// MulticastReport is the multicast part of a Report. A mask is the
// set of ports of one switch for one group; empty masks count, too.
type MulticastReport struct {
	Groups      int              `json:"groups"` // number of MGIDs
	Equal       int              `json:"equal_groups"`
	Members     int              `json:"members"`     // that joined
	OtherMLIDs  int              `json:"other_mlids"` // groups whose MLID in OpenSM is not ours, which is no difference
	Masks       int              `json:"masks"`
	Differences int              `json:"differences"`
	Samples     []MaskDifference `json:"samples"` // by MGID, then switch
	Refused     int              `json:"refused"` // joins that OpenSM refused
	RefusedWhy  []string         `json:"refused_samples"`
}

// MapDifference is a SL-to-VL table that differs. In is 0 for a port of a CA or router.
type MapDifference struct {
	Node   Switch         `json:"node"`
	In     fabric.PortNum `json:"in"`
	Out    fabric.PortNum `json:"out"`
	Ours   []int          `json:"ours"` // VL by SL
	OpenSM []int          `json:"opensm"`
	// Labels has the labels of the ports of Node.
	Labels fabric.PortLabels `json:"labels,omitempty"`
}

// String returns the node, its ports and both tables.
func (d MapDifference) String() string {
	vls := func(m []int) string { return strings.Trim(strings.ReplaceAll(fmt.Sprint(m), " ", ","), "[]") }
	return fmt.Sprintf("%q (%s), port %s to port %s: VLs %s, OpenSM has %s", d.Node.Name.Text, d.Node.GUID, d.Labels.Text(d.In), d.Labels.Text(d.Out), vls(d.Ours), vls(d.OpenSM))
}

// SL2VLReport is the SL-to-VL part of a Report. It counts the tables of switches, for each
// input port and each output port with a cable, and those of other nodes' ports with a cable.
type SL2VLReport struct {
	Maps        int             `json:"maps"`
	Differences int             `json:"differences"`
	Samples     []MapDifference `json:"samples"` // by node, out and in
}

// PathDifference is a path that has another SL.
type PathDifference struct {
	From   string     `json:"from"` // "description"[port]
	LID    fabric.LID `json:"lid"`  // destination of the path
	Ours   fabric.SL  `json:"ours"`
	OpenSM fabric.SL  `json:"opensm"`
}

// String returns the path and both SLs.
func (d PathDifference) String() string {
	return fmt.Sprintf("%s to LID %d: SL %d, OpenSM has %d", d.From, d.LID, d.Ours, d.OpenSM)
}

// PathSLReport compares the SLs that subnet administration gives to paths with ours:
// from every end port with a LID to every LID. It leaves out paths without a record.
type PathSLReport struct {
	Paths       int              `json:"paths"`
	Differences int              `json:"differences"`
	Samples     []PathDifference `json:"samples"` // by port and LID
}

// libraryFolders are those in which OpenSM finds its plugins:
// the folders of the dynamic linker, on Debian and on others.
var libraryFolders = []string{"/usr/local/lib", "/usr/local/lib/*-linux-gnu*", "/usr/lib/*-linux-gnu*", "/lib/*-linux-gnu*", "/usr/lib64", "/lib64", "/usr/lib", "/lib"}

// findPlugin looks for the plugin beside this program, in the folders of
// LD_LIBRARY_PATH and in those of the dynamic linker.
func findPlugin() (string, error) {
	places := slices.Concat(filepath.SplitList(os.Getenv("LD_LIBRARY_PATH")), libraryFolders)
	if program, err := os.Executable(); err == nil {
		places = slices.Insert(places, 0, filepath.Dir(program))
	}
	places = slices.DeleteFunc(places, func(place string) bool { return place == "" })
	for _, place := range places {
		if found, err := filepath.Glob(filepath.Join(place, LibraryName)); err == nil && len(found) > 0 {
			return found[0], nil
		}
	}
	return "", fmt.Errorf("%s is not there (%w): it was looked for in %s; `make build` makes it where libopensm-dev and libibumad-dev are installed, and --plugin FILE says where it is",
		LibraryName, os.ErrNotExist, strings.Join(places, ", "))
}

// RunPlugin rehearses the tables that the plugin makes: OpenSM runs with the plugin,
// ports join the groups by requests to subnet administration, and all tables are
// read back. Receivers join each tree of their group as full members; senders that
// do not receive join each of their trees as send-only non-members. The plugin gets
// groups.json, since join states do not show which full members send.
//
// Otherwise it is like Run. If there is no plugin, the error wraps os.ErrNotExist.
// Joins that OpenSM refuses are in the report.
func RunPlugin(ctx context.Context, f *fabric.Fabric, t *lft.Tables, opt PluginOptions) (*Report, error) {
	var err error
	if opt.Library == "" {
		if opt.Library, err = findPlugin(); err != nil {
			return nil, err
		}
	}
	if opt.Library, err = filepath.Abs(opt.Library); err != nil {
		return nil, err
	}
	if _, err := os.Stat(opt.Library); err != nil {
		return nil, err
	}
	byMLID := make(map[fabric.LID]*mft.Tree)
	for i := range opt.Trees {
		tree := &opt.Trees[i]
		if first := byMLID[tree.MLID]; first != nil && first.MGID != tree.MGID {
			return nil, &UnfitError{fmt.Sprintf("groups %q (%s) and %q (%s) share MLID %#x, and OpenSM gives every group a MLID of its own",
				first.Name, first.MGID, tree.Name, tree.MGID, uint16(tree.MLID))}
		}
		byMLID[tree.MLID] = tree
	}
	return rehearse(ctx, f, t, opt, ViaPlugin)
}

// groupsFile is the file of a compile directory that the plugin reads.
const groupsFile = "groups.json"

// preparePlugin makes the files that the plugin reads, and names it to OpenSM.
func (r *run) preparePlugin() error {
	groups := ""
	if r.opt.MFT != nil {
		// The plugin finds guid2lid, with the twin's GUIDs, beside groups.json.
		dir := filepath.Join(r.dir, "groups")
		if err := os.Mkdir(dir, 0o700); err != nil {
			return err
		}
		groups = filepath.Join(dir, groupsFile)
		text, err := mft.AppendGroupsJSON(nil, r.f, r.opt.Trees)
		if err != nil {
			return &UnfitError{err.Error()}
		}
		if err := os.WriteFile(groups, text, 0o600); err != nil {
			return err
		}
		if err := files.Write(filepath.Join(dir, guid2lidFile), func(w io.Writer) error {
			return dump.WriteGUID2LID(w, r.twin.Fabric)
		}); err != nil {
			return err
		}
	}
	config := filepath.Join(r.dir, "ibweave.yaml")
	text, err := r.opt.Config(groups)
	if err != nil {
		return err
	}
	if err := os.WriteFile(config, text, 0o600); err != nil {
		return err
	}
	// OpenSM derives the file name from the plugin's name.
	lib := filepath.Join(r.dir, "lib")
	if err := os.Mkdir(lib, 0o700); err != nil {
		return err
	}
	path := lib
	if old := os.Getenv("LD_LIBRARY_PATH"); old != "" {
		path += string(os.PathListSeparator) + old
	}
	r.config.Engine, r.config.Env = enginePrefix+r.opt.Engine, []string{"LD_LIBRARY_PATH=" + path}
	r.config.Options = append(r.config.Options, "event_plugin_name "+PluginName, "event_plugin_options --config "+config)
	if r.opt.SL2VL != nil {
		r.config.Options = append(r.config.Options, "qos TRUE")
	}
	return os.Symlink(r.opt.Library, filepath.Join(lib, LibraryName))
}

// joining makes the members of all trees join OpenSM's groups.
type joining struct {
	*run
	c *subnet.Client
	m subnet.Manager
}

// joinRequest is a request to join an existing group.
type joinRequest struct {
	tree  *mft.Tree
	port  fabric.PortID
	state mad.JoinState
}

// join makes the members of all trees join OpenSM's groups.
func (r *run) join(ctx context.Context, c *subnet.Client) error {
	m, err := c.Manager(ctx)
	if err != nil {
		return err
	}
	j := &joining{run: r, c: c, m: m}
	r.live = make(map[mft.MGID]fabric.LID, len(r.opt.Trees))
	var rest []joinRequest
	for i := range r.opt.Trees {
		tree := &r.opt.Trees[i]
		made, err := j.makeGroup(ctx, tree)
		if err != nil {
			return err
		}
		if made {
			rest = append(rest, otherMembers(tree)...)
		}
	}
	return j.joinRest(ctx, rest)
}

// makeGroup joins the first receiver of a tree. That creates the group, with our
// MLID if it is free. made is false if OpenSM does not have the group afterwards.
func (j *joining) makeGroup(ctx context.Context, tree *mft.Tree) (made bool, err error) {
	if len(tree.Receivers) == 0 {
		j.note("group %q (%s) has no receivers: only a full member makes a group (IBA 15.2.5.17), so OpenSM does not have it", tree.Name, tree.MGID)
		return false, nil
	}
	first := joinRequest{tree, tree.Receivers[0], mad.FullMember}
	got, err := j.send(ctx, first, tree.MLID)
	if _, other := errors.AsType[*subnet.MLIDError](err); other {
		got, err = j.send(ctx, first, 0)
	}
	if err != nil {
		return false, j.checkRefused(first, err)
	}
	report := j.report.Multicast
	report.Members++
	if j.live[tree.MGID] = got.MLID; got.MLID != tree.MLID {
		report.OtherMLIDs++
	}
	return true, nil
}

// otherMembers returns the members of a tree except the one that created its group.
func otherMembers(tree *mft.Tree) (list []joinRequest) {
	for _, r := range tree.Receivers[1:] {
		list = append(list, joinRequest{tree, r, mad.FullMember})
	}
	for _, s := range tree.Senders {
		if _, receives := slices.BinarySearch(tree.Receivers, s); !receives {
			list = append(list, joinRequest{tree, s, mad.SendOnlyNonMember})
		}
	}
	return list
}

// joinsAtOnce is the number of join requests under way together.
const joinsAtOnce = 8

// joinRest sends all other requests.
func (j *joining) joinRest(ctx context.Context, list []joinRequest) error {
	failed := make([]error, len(list))
	err := par.ForEach(ctx, joinsAtOnce, len(list), func(i int) error {
		_, failed[i] = j.send(ctx, list[i], 0)
		return nil
	})
	if err != nil {
		return err
	}
	for i, err := range failed {
		if err == nil {
			j.report.Multicast.Members++
		} else if err := j.checkRefused(list[i], err); err != nil {
			return err
		}
	}
	return nil
}

// send sends a request for an MLID, 0 for any.
func (j *joining) send(ctx context.Context, q joinRequest, mlid fabric.LID) (mad.MCMemberRecord, error) {
	port := j.twin.PortGUID(j.f.PortGUID(q.port))
	return j.c.Join(ctx, j.m, subnet.Membership{MGID: q.tree.MGID, MLID: mlid, Port: port, State: q.state, SL: q.tree.SL})
}

// checkRefused notes that OpenSM refused a request. It returns any other error.
func (j *joining) checkRefused(q joinRequest, err error) error {
	var status *mad.StatusError
	var group *subnet.NoGroupError
	if !errors.As(err, &status) && !errors.As(err, &group) {
		return err
	}
	report := j.report.Multicast
	if report.Refused++; report.Refused <= j.opt.Samples {
		report.RefusedWhy = append(report.RefusedWhy, fmt.Sprintf("%s, group %q (%s): %v", j.f.PortName(q.port), q.tree.Name, q.tree.MGID, err))
	}
	return nil
}

// compareMasks compares the masks of all groups, by MGID. Switches have the same GUIDs in
// the twin.
func (r *run) compareMasks(got *mft.Tables) {
	report, f := r.report.Multicast, r.f
	var list []MaskDifference
	compare := func(group, mgid string, ours, live fabric.LID) (same bool) {
		same = true
		for _, s := range f.Switches() {
			report.Masks++
			want, have := []int{}, []int{}
			if ours != 0 {
				want = f.Nums(r.opt.MFT.Mask(s, ours))
			}
			if m, ok := got.Fabric().SwitchByGUID(f.Node(s).GUID); ok && live != 0 {
				have = got.Fabric().Nums(got.Mask(m, live))
			}
			if !slices.Equal(want, have) {
				same = false
				list = append(list, MaskDifference{group, mgid, live, nameOf(f, s), want, have, f.PortLabels(s)})
			}
		}
		return same
	}
	trees := slices.Clone(r.opt.Trees)
	slices.SortFunc(trees, func(a, b mft.Tree) int { return a.MGID.Compare(b.MGID) })
	known := make(map[fabric.LID]bool)
	for i := range trees {
		tree := &trees[i]
		live := r.live[tree.MGID]
		known[live] = true
		if compare(tree.Name, tree.MGID.String(), tree.MLID, live) {
			report.Equal++
		}
	}
	for _, l := range got.MLIDs() {
		if !known[l] {
			compare("", "", 0, l)
		}
	}
	report.Differences = len(list)
	report.Samples = append(report.Samples, list[:min(len(list), r.opt.Samples)]...)
}

// compareMaps compares SL-to-VL tables.
func (r *run) compareMaps(got *lft.SL2VL) {
	report, f := r.report.SL2VL, r.f
	g := got.Fabric()
	byGUID := make(map[fabric.GUID]fabric.PortID)
	g.EndPorts(func(q fabric.PortID) { byGUID[g.PortGUID(q)] = q })
	compare := func(in fabric.PortNum, out, found fabric.PortID) {
		report.Maps++
		want, have := r.opt.SL2VL.At(in, out), got.At(in, found)
		if *want == *have {
			return
		}
		if report.Differences++; report.Differences <= r.opt.Samples {
			d := MapDifference{Node: nameOf(f, f.Owner(out)), In: in, Out: f.Num(out), Labels: f.PortLabels(f.Owner(out))}
			for sl := range want {
				d.Ours, d.OpenSM = append(d.Ours, int(want[sl])), append(d.OpenSM, int(have[sl]))
			}
			report.Samples = append(report.Samples, d)
		}
	}
	for _, s := range f.Switches() {
		m, ok := g.SwitchByGUID(f.Node(s).GUID)
		if !ok {
			continue // counted as unread
		}
		lft.EachMap(f, s, func(in, out fabric.PortNum) { compare(in, f.Port(s, out), g.Port(m, out)) })
	}
	for _, q := range f.CAPorts() {
		if found, ok := byGUID[r.twin.PortGUID(f.PortGUID(q))]; ok && f.Peer(q) != fabric.NoPort {
			compare(0, q, found)
		}
	}
	if n := r.opt.SL2VL.VLs(); report.Differences > 0 && n > ibsim.DataVLs {
		r.note("the SL-to-VL tables have %d VLs, and ports of ibsim have %d, which OpenSM masks with", n, ibsim.DataVLs)
	}
}

// maxPaths is the default of Options.Paths: OpenSM on ibsim
// answers some ten thousand in a second.
const maxPaths = 500_000

// thinning returns n such that the paths from every n-th end
// port to all LIDs do not exceed most.
func thinning(g *fabric.Fabric, most int) int {
	lids := 0
	g.EndPorts(func(p fabric.PortID) { lids += g.NumLIDs(p) })
	return 1 + (len(g.CAPorts())+g.NumSwitches())*lids/most
}

// comparePaths asks subnet administration for the SLs of paths of
// g, the discovered fabric, from as many ports as Options.Paths
// allows. It reports the paths whose SL differs from ours.
func (r *run) comparePaths(ctx context.Context, c *subnet.Client, g *fabric.Fabric) error {
	n := thinning(g, cmp.Or(r.opt.Paths, maxPaths))
	if n > 1 {
		r.note("SLs of paths are compared from one of %d ports alone; compare all with ibweave pull --path-sl and diff", n)
	}
	m, err := c.Manager(ctx)
	if err != nil {
		return err
	}
	got, _, err := c.PathSLs(ctx, m, g, n)
	if err != nil {
		return err
	}
	report, f, ours := &PathSLReport{Samples: []PathDifference{}}, r.f, r.opt.PathSLs
	g.EndPorts(func(found fabric.PortID) {
		if g.LID(found) == 0 || g.Attachment(found) == fabric.NoPort {
			return
		}
		port := f.LIDPort(g.LID(found))
		if port == fabric.NoPort || f.Attachment(port) == fabric.NoPort { // counted among the ports with other LIDs
			return
		}
		at, there := f.Owner(f.Attachment(port)), g.Owner(g.Attachment(found))
		row := got.PortRow(found)
		if row == nil {
			row = got.Given(there)
		}
		for lid := fabric.LID(1); lid <= min(ours.MaxLID(), got.MaxLID()); lid++ {
			have := row[lid]
			if f.LIDPort(lid) == fabric.NoPort || have == lft.UnknownSL {
				continue
			}
			report.Paths++
			want := ours.SL(port, at, lid)
			if want == have {
				continue
			}
			if report.Differences++; report.Differences <= r.opt.Samples {
				report.Samples = append(report.Samples, PathDifference{f.PortName(port), lid, want, have})
			}
		}
	})
	r.report.PathSLs = report
	return nil
}

// explainPlugin notes the warnings in the plugin's log, which
// is beside OpenSM's; a plugin that was not loaded has no log.
func (r *run) explainPlugin() {
	text, _ := os.ReadFile(filepath.Join(r.config.Dir, "ibweave.log"))
	said := 0
	for line := range bytes.Lines(text) {
		_, what, _ := strings.Cut(strings.TrimSpace(string(line)), "\t")
		if level, message, ok := strings.Cut(what, "\t"); ok && (strings.EqualFold(level, "warn") || strings.EqualFold(level, "error")) {
			if said++; said <= r.opt.Samples {
				r.note("the plugin's log: %s", strings.ReplaceAll(message, "\t", " "))
			}
		}
	}
}
