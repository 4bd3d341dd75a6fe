package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/ibweave/ibweave/audit/capture"
	"github.com/ibweave/ibweave/audit/jobs"
	"github.com/ibweave/ibweave/cmd/cli"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/topology"
	"github.com/ibweave/ibweave/internal/files"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/state/open"
	"github.com/ibweave/ibweave/verify"
)

// audit has the flags of a command that judges a state, and what it has read and found.
type audit struct {
	open.Input
	bound string // "" for none
	bounding
	verbose     bool // list idle channels
	namesLane   bool // credit-loop findings say if one VL is assumed
	copying     verify.Copying
	buffer      verify.Buffer
	mftCapacity int                                           // MLIDs; 0 for what ibdiagnet says
	place       func(*verify.Finding) (file string, line int) // place of a finding in --source; nil for the files that were read
	cablesAlone bool                                          // check a topology's cables, without tables
	partitions  string                                        // partitions.conf; "" for none
	manager     string                                        // node or port of the subnet manager; "" for not said
	traffic     string                                        // "" for none
	jobs        *jobs.Fitting                                 // of traffic; nil for none
	worth       *jobs.Worth                                   // of the tables for jobs; nil if unknown
	findings    []verify.Finding
	demands
}

func (in *audit) fileFlags(flags *pflag.FlagSet) {
	flags.StringVarP(&in.Topology, "topology", "t", "", "topology `FILE`")
	flags.StringVar(&in.LFTs, "lfts", "", "`FILE` of forwarding tables")
	flags.StringVar(&in.SL2VL, "sl2vl", "", "`FILE` of SL-to-VL tables")
	flags.StringVar(&in.PathSLs, "path-sl", "", "`FILE` with the SLs of paths")
	flags.StringVar(&in.MFTs, "mfts", "", "`FILE` of multicast forwarding tables")
	lenientFlag(flags, &in.Lenient)
}

// choiceFlags defines the flags that name files of adaptive routing.
func (in *audit) choiceFlags(flags *pflag.FlagSet) {
	flags.StringVar(&in.FAR, "far", "", "`FILE` of adaptive routing, ibdiagnet's far; its static ports do without --lfts")
	flags.StringVar(&in.PLFT, "plft", "", "`FILE` that says which private LFT a packet takes, for --far")
}

// routedFlags defines flags for readOrRoute: files of tables, or an engine that makes them.
func (in *audit) routedFlags(flags *pflag.FlagSet, engine *string) {
	flags.StringVarP(&in.Topology, "topology", "t", "", "topology `FILE`; - is standard input")
	flags.StringVar(&in.LFTs, "lfts", "", "`FILE` of forwarding tables")
	in.choiceFlags(flags)
	flags.StringVarP(engine, "engine", "e", "", "route the topology with `ENGINE`, as compile does")
	lenientFlag(flags, &in.Lenient)
}

// newAudit returns an audit without files.
func newAudit(lenient, adaptive bool) *audit {
	return &audit{Input: open.Input{Options: open.Options{Lenient: lenient, TakeAdaptive: adaptive}}}
}

// readRaw reads a whole file as it is, or standard input for "-".
// An interrupt ends it: the writer of a FIFO may never come.
func (a *app) readRaw(name string) ([]byte, error) {
	from := a.stdin
	if name == "-" && a.stdinRead {
		return nil, cli.ErrOneStdin
	}
	a.stdinRead = a.stdinRead || name == "-"
	s := a.startStage("read " + name)
	defer s.End()
	var data []byte
	ended := make(chan error, 1)
	go func() {
		ended <- func() (err error) {
			if name != "-" {
				f, err := os.Open(name) // waits for the writer of a FIFO
				if err != nil {
					return open.NewError(err)
				}
				defer f.Close()
				info, err := f.Stat()
				switch {
				case err != nil:
					return open.NewError(err)
				case info.IsDir():
					return inputf("%s is a directory, want a file", name)
				}
				s.Total.Store(info.Size())
				from = f
			}
			if data, err = files.ReadAll(name, from, open.Limit, &s.Done); err != nil {
				return open.NewError(err)
			}
			return nil
		}()
	}()
	select {
	case err := <-ended:
		return data, err
	case <-a.interrupted:
		return nil, context.Canceled
	}
}

// readInput reads like readRaw, and undoes zstd, gzip or UTF-16.
func (a *app) readInput(name string) ([]byte, error) {
	return a.reader(new(audit)).Text(name)
}

// reader returns the input of an audit, set up with the program's flags and messages.
func (a *app) reader(in *audit) *open.Input {
	in.Strict = a.strict
	in.Host = open.Host{
		Read: a.readRaw, Rename: a.named,
		Stage: func(name string) func() { return a.startStage(name).End },
		Tell:  func(f *fabric.Fabric, problems []fabric.Problem) { a.tell(in, f, problems) },
		Say:   func(line string) { fmt.Fprintln(a.stderr, line) },
	}
	return &in.Input
}

// tell makes findings of a reader's problems that have a rule; if in.Findings
// is false, it prints a line for each rule. It prints all other problems.
func (a *app) tell(in *audit, f *fabric.Fabric, problems []fabric.Problem) {
	if f == nil {
		f = &fabric.Fabric{}
	}
	for _, x := range capture.Findings(f, problems) {
		if !in.Findings {
			fmt.Fprintln(a.stderr, x.Message)
			continue
		}
		n := text.CountIf(in.findings, func(other verify.Finding) bool { return other.Rule == x.Rule })
		x.Fingerprint = capture.Fingerprint(x.Rule, n+1)
		in.findings = append(in.findings, x)
	}
	if in.Findings {
		in.findings = append(in.findings, capture.TableFindings(problems)...)
	}
	// LIDs that several ports have are a problem already: contradictions about them are left out.
	twice := make(map[string]bool)
	for _, p := range in.State.Problems {
		if p.Kind == fabric.DuplicateLID {
			twice[fmt.Sprintf("LID %d belongs to ", p.LID)] = true
		}
	}
	a.dumpProblems(slices.DeleteFunc(slices.Clone(problems), func(p fabric.Problem) bool {
		begin, _, _ := strings.Cut(p.Message, "0x")
		return capture.RuleOf(p.Kind) != "" || in.Findings && (p.Kind == fabric.Notice || p.Kind == fabric.Gone || p.Kind == verify.FileChanged) || p.Kind == fabric.Contradiction && twice[begin]
	}), in.Lenient)
}

// named returns f with the names of --node-name-map, and with
// the kinds that the policy and --kinds give to names.
func (a *app) named(f *fabric.Fabric) (*fabric.Fabric, error) {
	f, err := a.renamed(f)
	if err != nil || a.kinds == "" && a.policyKinds == nil {
		return f, err
	}
	rules := a.policyKinds
	if a.kinds != "" {
		more, err := fabric.ParseKindRules(a.kinds)
		if err != nil {
			return nil, usagef("--kinds: %w", err)
		}
		rules = slices.Concat(rules, more)
	}
	f, unused := f.WithKinds(rules)
	for _, r := range unused {
		fmt.Fprintf(a.stderr, "kinds: no channel adapter or router is called %q\n", r.Pattern)
	}
	return f, nil
}

func (a *app) renamed(f *fabric.Fabric) (*fabric.Fabric, error) {
	m := &a.nameMap
	if m.file == "" {
		return f, nil
	}
	if m.names == nil {
		data, err := a.readInput(m.file)
		if err != nil {
			return nil, err
		}
		var problems []fabric.Problem
		if m.names, problems, err = topology.ParseNames(m.file, data); err != nil {
			return nil, err
		}
		for _, x := range capture.Findings(f, problems) {
			fmt.Fprintln(a.stderr, x.Message)
		}
	}
	return f.WithNames(m.names), nil
}

// readAs reads a file with parse.
func readAs[T any](a *app, in *audit, name string, parse func(name string, data []byte) (T, error)) (t T, err error) {
	data, err := a.reader(in).ReadFile(name)
	if err != nil {
		return t, err
	}
	return parse(name, data)
}

// readTopology reads the fabric from a file, or from a run of ibdiagnet.
func (a *app) readTopology(name string, lenient bool) (*fabric.Fabric, error) {
	in := newAudit(lenient, false)
	in.Topology = name
	return a.reader(in).Fabric()
}

// readFabric reads a fabric to route. why ends the error for a fabric without switches.
func (a *app) readFabric(r *routeFlags, why string) (*fabric.Fabric, error) {
	f, err := a.readTopology(r.topology, r.lenient)
	if err == nil && f.NumSwitches() == 0 {
		err = inputf("%s has no switch, %s", r.topology, why)
	}
	return f, err
}

// readTables reads a fabric and its tables, nil if there are none.
func (a *app) readTables(in *audit) (*fabric.Fabric, *lft.Tables, error) {
	err := a.reader(in).Tables()
	return in.State.Fabric, in.State.Tables, err
}

// readRouting reads a fabric, its tables, nil if there are none, and its lanes.
func (a *app) readRouting(in *audit) (*lft.Routing, error) {
	r := a.reader(in)
	if err := r.Tables(); err != nil {
		return nil, err
	}
	err := r.Lanes()
	return &lft.Routing{Fabric: r.State.Fabric, Tables: r.State.Tables, SL2VL: r.State.SL2VL, PathSLs: r.State.PathSLs}, err
}

// readCompiledRouting reads tables, lanes and order of the directory that in has found.
func (a *app) readCompiledRouting(in *audit) (*lft.Routing, error) {
	r, err := a.readRouting(in)
	if err != nil {
		return nil, err
	}
	r.Engine = in.Compiled.Manifest.Engine
	err = a.reader(in).Order()
	r.Order = in.State.Order
	r.Fabric = r.Fabric.WithoutVirtualLIDs()
	return r, err
}

// switches finds switches by GUID. A list of one entry that is no GUID names
// a file with a GUID a line, as OpenSM's root_guid_file; # begins a comment.
func (a *app) switches(f *fabric.Fabric, flag string, list []string) ([]fabric.NodeID, error) {
	if len(list) == 1 {
		if _, err := fabric.ParseGUID(list[0]); err != nil {
			data, err := a.readInput(list[0])
			if err != nil {
				return nil, err
			}
			return open.ReadSwitches(list[0], data, f)
		}
	}
	var found []fabric.NodeID
	for _, text := range list {
		s, err := open.Switch(f, text)
		if err != nil {
			return nil, open.NewError(fmt.Errorf("%s: %w", flag, err))
		}
		found = append(found, s)
	}
	return found, nil
}

func (a *app) setRoots(f *fabric.Fabric, list []string, opt *lft.Options) (err error) {
	if opt.Balanced = slices.Equal(list, []string{balancedRoots}); !opt.Balanced {
		opt.Roots, err = a.switches(f, "--roots", list)
	}
	return err
}

// listUndecided lists the rules that the input leaves undecided.
func (in *audit) listUndecided() []verify.Undecided {
	return capture.Undecided(in.State.Undecided, capture.Asked{Tables: in.HasTables(), Multicast: in.MFTs != "", Cables: in.wanted()})
}

// isFolderAlone returns true if -t names a folder and no other flag names a file: then all files of
// the folder are read.
func isFolderAlone(n *open.Files) bool { return n.OnlyTopology() && open.Folder(n.Topology) }
