// Package rehearse proves that forwarding tables arrive: it runs the real
// OpenSM with them on the real ibsim, reads back what the simulated switches
// then have, and compares entry by entry. It makes no promise to other modules.
//
// Package subnet reads what is compared, by SMPs to switches and ports, and
// knows nothing of the files or of OpenSM. Multicast tables are compared only
// with the plugin.
package rehearse

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/files"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mft"
	"github.com/ibweave/ibweave/sminterface/dump"
	"github.com/ibweave/ibweave/sminterface/ibsim"
	"github.com/ibweave/ibweave/sminterface/subnet"
)

// The files of a compile directory that OpenSM gets.
const (
	lftsFile      = "opensm-lfts.dump"
	lidMatrixFile = "opensm-lid-matrix.dump"
	guid2lidFile  = "guid2lid"
)

// Options are the settings of Run.
type Options struct {
	// Dir is a compile directory. OpenSM gets its opensm-lfts.dump and, if they
	// exist, its opensm-lid-matrix.dump and guid2lid, unchanged except for port
	// GUIDs that ibsim cannot have. Without Dir, OpenSM gets files made from
	// the fabric and the tables.
	Dir string
	// SL2VL has the SL-to-VL tables; if it is nil, none are compared.
	// If OpenSM gets files, OpenSMOptions must create the tables.
	SL2VL *lft.SL2VL
	// PathSLs has the SLs of paths that the plugin returns; if it is nil, none are compared.
	PathSLs *lft.PathSLs
	Paths   int // greatest number of paths to ask for; 0: 500,000
	// NotCarried is why files cannot bring OpenSM all that the proof of
	// the tables needs; "" if they can. It counts as a difference.
	NotCarried string
	// Samples is the number of differences of each kind that the report lists; 0 means 20.
	Samples int
	// OpenSM is the program, by default opensm on $PATH. OpenSMOptions are
	// further lines for its opensm.conf.
	OpenSM        string
	OpenSMOptions []string
	// Progress, if set, is called with the name of each stage as it begins.
	Progress func(stage string)
}

// The stages, as Options.Progress and Report.Seconds name them.
const (
	StagePrepare  = "prepare"
	StageSimulate = "simulate"
	StageOpenSM   = "opensm"
	StageJoin     = "join"
	StageSweep    = "sweep"
	StageReadBack = "read-back"
	StageExplain  = "explain"
)

// Difference is an entry that differs.
type Difference struct {
	Switch fabric.GUID    `json:"switch"`
	Name   fabric.Name    `json:"name"`
	LID    fabric.LID     `json:"lid"`
	Ours   fabric.PortNum `json:"ours"`   // fabric.NoPath for none
	OpenSM fabric.PortNum `json:"opensm"` // what the switch has
	// Labels has the labels of the ports, see fabric.Fabric.PortLabels.
	Labels fabric.PortLabels `json:"labels,omitempty"`
}

// String returns "switch" (GUID), LID: port against port.
func (d Difference) String() string {
	return fmt.Sprintf("%q (%s), LID %d: %s, OpenSM has %s", d.Name.Text, d.Switch, d.LID, entryText(d.Ours, d.Labels), entryText(d.OpenSM, d.Labels))
}

func entryText(p fabric.PortNum, labels fabric.PortLabels) string {
	if p == fabric.NoPath {
		return "no path"
	}
	return "port " + labels.Text(p)
}

// LIDDifference is a port that got another LID than intended.
type LIDDifference struct {
	Port   string      `json:"port"` // "description"[port]
	GUID   fabric.GUID `json:"guid"` // of the port, in the real fabric
	Ours   fabric.LID  `json:"ours"`
	LMC    uint8       `json:"lmc"`
	OpenSM fabric.LID  `json:"opensm"`
	// OpenSMLMC is the LMC that the port has got.
	OpenSMLMC uint8 `json:"opensm_lmc"`
}

// String returns "port" (GUID): LID against LID.
func (d LIDDifference) String() string {
	return fmt.Sprintf("%s (%s): LID %d, LMC %d, OpenSM gave it LID %d, LMC %d", d.Port, d.GUID, d.Ours, d.LMC, d.OpenSM, d.OpenSMLMC)
}

// Switch names a switch.
type Switch struct {
	GUID fabric.GUID `json:"guid"`
	Name fabric.Name `json:"name"`
}

func nameOf(f *fabric.Fabric, n fabric.NodeID) Switch { return Switch{f.Node(n).GUID, f.Name(n)} }

// Report is the result of a rehearsal. Entries are those of LIDs from 1 to
// the highest of the fabric and the tables, on the switches that were read.
// A switch with a lower LinearFDBTop has no path to the LIDs above it.
type Report struct {
	Via    Via    `json:"via"`
	Plugin string `json:"plugin,omitempty"` // the file

	Switches      int          `json:"switches"`
	EqualSwitches int          `json:"equal_switches"`
	Entries       int          `json:"entries"`
	Differences   int          `json:"differences"`
	Samples       []Difference `json:"samples"` // by switch GUID and LID
	Unread        int          `json:"unread_switches"`
	UnreadSamples []Switch     `json:"unread_samples"` // by GUID

	WrongLIDs  int             `json:"wrong_lids"` // number of ports
	LIDSamples []LIDDifference `json:"lid_samples"`

	Multicast *MulticastReport `json:"multicast,omitempty"` // nil if not compared
	SL2VL     *SL2VLReport     `json:"sl2vl,omitempty"`     // likewise

	PathSLs    *PathSLReport `json:"path_sls,omitempty"`    // likewise
	NotCarried string        `json:"not_carried,omitempty"` // from Options

	OpenSM    string   `json:"opensm_version"`
	Engine    string   `json:"opensm_engine"` // engine whose tables it configured: "file", unless it gave up
	SubnetUp  bool     `json:"subnet_up"`
	Errors    []string `json:"opensm_errors"` // the first ones in its log
	NumErrors int      `json:"opensm_error_count"`

	Seconds map[string]float64 `json:"seconds"` // by stage
	Notes   []string           `json:"notes"`   // known reasons
}

// Equal returns true if every switch has exactly the tables that it should have, and the
// files can carry everything that is needed.
func (r *Report) Equal() bool {
	return r.NotCarried == "" && r.EqualSwitches == r.Switches && r.Differences == 0 && r.WrongLIDs == 0 &&
		(r.Multicast == nil || r.Multicast.Equal == r.Multicast.Groups && r.Multicast.Differences == 0 && r.Multicast.Refused == 0) &&
		(r.SL2VL == nil || r.SL2VL.Differences == 0) && (r.PathSLs == nil || r.PathSLs.Differences == 0)
}

// UnfitError means that OpenSM's file engine cannot carry the routing, or that
// OpenSM cannot run on the fabric, whatever the files contain.
type UnfitError struct{ Reason string }

func (e *UnfitError) Error() string { return "cannot be rehearsed: " + e.Reason }

// Run rehearses tables t of fabric f, whose ports have their LIDs. When it returns, all processes
// that it has started have ended, and all files that it has written are removed. If this process is
// killed, no process stays behind either.
//
// Differences, and an OpenSM that does not accept the tables, are in the report and are no errors.
// Errors: an *ibsim.MissingError, an *UnfitError, an *ibsim.ExitError, ctx's own, and those of
// files. The report is then nil.
func Run(ctx context.Context, f *fabric.Fabric, t *lft.Tables, opt Options) (*Report, error) {
	return rehearse(ctx, f, t, PluginOptions{Options: opt}, ViaFile)
}

// rehearse does a rehearsal. With ViaFile, opt has only Options.
func rehearse(ctx context.Context, f *fabric.Fabric, t *lft.Tables, opt PluginOptions, via Via) (*Report, error) {
	opt.OpenSM, opt.Samples = cmp.Or(opt.OpenSM, "opensm"), cmp.Or(opt.Samples, 20)
	for _, program := range []string{"ibsim", opt.OpenSM} {
		if _, err := ibsim.Find(program); err != nil {
			return nil, err
		}
	}
	if err := lft.CheckFabric(f, t, nil, nil); err != nil {
		return nil, err
	}
	if f.NumSwitches() == 0 {
		return nil, &UnfitError{ibsim.ErrNoSwitch.Error()}
	}
	lmc, port0, err := subnetLMC(f)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "ibweave-rehearse-")
	if err != nil {
		return nil, err
	}
	r := &run{ctx: ctx, f: f, t: t, opt: opt, dir: dir,
		report: &Report{
			Via: via, Plugin: opt.Library, NotCarried: opt.NotCarried, Switches: f.NumSwitches(), Samples: []Difference{}, UnreadSamples: []Switch{}, LIDSamples: []LIDDifference{},
			Errors: []string{}, Seconds: map[string]float64{}, Notes: []string{},
		}}
	if opt.SL2VL != nil {
		r.report.SL2VL = &SL2VLReport{Samples: []MapDifference{}}
	}
	if opt.MFT != nil {
		r.report.Multicast = &MulticastReport{Groups: len(opt.Trees), Samples: []MaskDifference{}, RefusedWhy: []string{}}
	}
	r.config = ibsim.OpenSMConfig{Program: opt.OpenSM, Dir: filepath.Join(dir, "opensm"), LMC: lmc, LMCPort0: port0, Timeout: r.timeout(),
		Options: append([]string{"sweep_interval 0"}, opt.OpenSMOptions...)}
	if err = cmp.Or(r.all(), os.RemoveAll(dir)); err != nil {
		return nil, err
	}
	return r.report, nil
}

// subnetLMC returns the options that give all ports the LMC that they have in f.
// OpenSM has one LMC for all CAs and routers. Enhanced ports 0 have it either all
// or not at all (lmc_esp0, port0 here); base ports 0 have LMC 0 (osm_lid_mgr.c).
func subnetLMC(f *fabric.Fabric) (lmc uint8, port0 bool, wrong error) {
	ca, enhanced := fabric.NoPort, fabric.NoPort
	check := func(p fabric.PortID, want uint8, other fabric.PortID) {
		if f.LMC(p) != want && wrong == nil {
			as := "OpenSM gives it 0"
			if other != fabric.NoPort {
				as = fmt.Sprintf("%s has %d, and OpenSM has one for all", f.PortName(other), want)
			}
			wrong = &UnfitError{fmt.Sprintf("%s has LMC %d, but %s", f.PortName(p), f.LMC(p), as)}
		}
	}
	for _, p := range f.CAPorts() {
		if f.LID(p) == 0 {
			continue
		}
		if ca == fabric.NoPort {
			ca, lmc = p, f.LMC(p)
		}
		check(p, lmc, ca)
	}
	for _, s := range f.Switches() {
		p := f.PortBase(s)
		switch {
		case f.LID(p) == 0:
		case !f.Node(s).EnhancedPort0:
			check(p, 0, fabric.NoPort)
		case enhanced == fabric.NoPort:
			enhanced = p
			if port0 = f.LMC(p) != 0; port0 {
				if ca == fabric.NoPort {
					ca, lmc = p, f.LMC(p)
				}
				check(p, lmc, ca)
			}
		default:
			check(p, f.LMC(enhanced), enhanced)
		}
	}
	return lmc, port0, wrong
}

// run is a rehearsal under way.
type run struct {
	ctx    context.Context
	f      *fabric.Fabric
	t      *lft.Tables
	opt    PluginOptions // with its defaults
	dir    string        // temporary
	config ibsim.OpenSMConfig
	twin   *ibsim.Twin
	report *Report
	live   map[mft.MGID]fabric.LID // MLIDs of OpenSM's groups
}

// stage runs a part of the rehearsal, announces its name, and adds up its time.
func (r *run) stage(name string, part func() error) error {
	if err := r.ctx.Err(); err != nil {
		return context.Cause(r.ctx)
	}
	if r.opt.Progress != nil {
		r.opt.Progress(name)
	}
	start := time.Now()
	err := part()
	r.report.Seconds[name] += time.Since(start).Seconds()
	if err != nil && r.ctx.Err() != nil {
		return context.Cause(r.ctx)
	}
	return err
}

// all does the rehearsal, stage by stage.
func (r *run) all() error {
	if err := r.stage(StagePrepare, r.prepare); err != nil {
		return err
	}
	var sim *ibsim.Sim
	if err := r.stage(StageSimulate, func() (err error) {
		// The ports have no LIDs yet, so that OpenSM must find them all in guid2lid.
		ports := r.twin.Fabric.NumPorts()
		blank, err := r.twin.WithLIDs(make([]fabric.LID, ports), make([]uint8, ports))
		if err != nil {
			return err
		}
		sim, err = ibsim.StartTwin(r.ctx, blank, ibsim.Config{})
		return err
	}); err != nil {
		return err
	}
	err := r.simulated(sim)
	return cmp.Or(err, sim.Close())
}

// simulated does what needs ibsim. If OpenSM does not accept the
// tables, it uses an engine of its own, so that the differences show.
func (r *run) simulated(sim *ibsim.Sim) (err error) {
	var o *ibsim.OpenSM
	if err := r.stage(StageOpenSM, func() (err error) {
		o, err = ibsim.StartOpenSM(r.ctx, sim, r.config)
		if r.report.Via == ViaFile && errors.Is(err, ibsim.ErrNotUp) && o.Run().Version != "" {
			return nil
		}
		return err
	}); err != nil {
		return err
	}
	defer func() {
		if ended := o.Stop(); o.Run().UP {
			err = cmp.Or(err, ended)
		}
	}()
	ctx, cancel := context.WithTimeout(r.ctx, r.timeout())
	defer cancel()
	transport, err := sim.Dial(ctx, "")
	if err != nil {
		return err
	}
	// On a busy machine, and while OpenSM is busy with joins, answers may take long.
	c := subnet.New(transport, subnet.Options{Timeout: 10 * time.Second})
	defer func() { err = cmp.Or(err, c.Close()) }()
	if r.opt.MFT != nil {
		if err := r.stage(StageJoin, func() error { return r.join(ctx, c) }); err != nil {
			return err
		}
	}
	if r.report.Via == ViaPlugin {
		if err := r.stage(StageSweep, func() error { return o.Sweep(ctx) }); err != nil {
			return err
		}
	}
	if err := r.stage(StageReadBack, func() error { return r.readBack(ctx, c) }); err != nil {
		return err
	}
	got, report := o.Run(), r.report
	report.OpenSM, report.Engine, report.SubnetUp = got.Version, got.Engine, got.UP
	report.Errors, report.NumErrors = append(report.Errors, got.Errors...), got.NumErrors
	if report.Equal() {
		return nil
	}
	return r.stage(StageExplain, func() error { r.explain(); return nil })
}

// prepare makes the fabric that ibsim gets, and the files that OpenSM and the plugin read.
func (r *run) prepare() error {
	twin, err := ibsim.NewTwin(r.f)
	if err != nil {
		return &UnfitError{err.Error()}
	}
	r.twin = twin
	cache := filepath.Join(r.config.Dir, "cache")
	if err := os.MkdirAll(cache, 0o700); err != nil {
		return err
	}
	if _, err := r.file(guid2lidFile, filepath.Join(cache, guid2lidFile), false, func(w io.Writer) error {
		return dump.WriteGUID2LID(w, twin.Fabric)
	}); err != nil {
		return err
	}
	if r.report.Via == ViaPlugin {
		return r.preparePlugin()
	}
	r.config.Engine = string(ViaFile)
	// Comments in the tables matter only for ports with other
	// LIDs than in the file. The twin's ports have these LIDs.
	lean := dump.WriteOptions{Lean: true}
	r.config.LFTs, err = r.file(lftsFile, filepath.Join(r.dir, lftsFile), true, func(w io.Writer) error {
		return dump.WriteLFTs(w, twin.Fabric, r.t, lean)
	})
	if err != nil {
		return err
	}
	r.config.LIDMatrix, err = r.file(lidMatrixFile, filepath.Join(r.dir, lidMatrixFile), false, func(w io.Writer) error {
		return dump.WriteLIDMatrix(w, twin.Fabric, r.t, lean)
	})
	return err
}

// file provides OpenSM with the file base and returns its path. Without Dir it has write fill path
// to. With Dir it is the file there or, if GUIDs differ or OpenSM writes to it, a copy in to with
// the twin's GUIDs; "" if Dir lacks it and needed is false.
func (r *run) file(base, to string, needed bool, write func(io.Writer) error) (string, error) {
	if r.opt.Dir == "" {
		return to, files.Write(to, write)
	}
	from, err := filepath.Abs(filepath.Join(r.opt.Dir, base))
	if err != nil {
		return "", err
	}
	switch _, err := os.Stat(from); {
	case errors.Is(err, fs.ErrNotExist) && !needed:
		r.note("%s is not there, so OpenSM went without it", from)
		return "", nil
	case err != nil:
		return "", err
	}
	// OpenSM writes to guid2lid, and gets a copy.
	if r.twin.Same() && base != guid2lidFile {
		return from, nil
	}
	text, err := files.ReadRegular(from, maxLFTs)
	if err != nil {
		return "", err
	}
	return to, files.Write(to, func(w io.Writer) error { return replaceGUIDs(w, text, r.twin.PortGUID) })
}

func (r *run) note(format string, args ...any) {
	r.report.Notes = append(r.report.Notes, fmt.Sprintf(format, args...))
}

// timeout returns how long OpenSM, or reading back, may take on this fabric: many times
// the usual, since it is only for runs that would never end.
func (r *run) timeout() time.Duration {
	entries := r.f.NumSwitches() * (int(r.t.MaxLID()) + 1)
	return 2*time.Minute + time.Duration(r.f.NumNodes())*20*time.Millisecond + time.Duration(entries)*5*time.Microsecond
}
