package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/ibweave/ibweave/audit/capture"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/state/open"
	"github.com/ibweave/ibweave/verify"
)

// fileFlags defines the flags that name the files of an audit.
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

// newAudit is an audit of no file yet.
func newAudit(lenient, adaptive bool) *audit {
	return &audit{Input: open.Input{Options: open.Options{Lenient: lenient, TakeAdaptive: adaptive}}}
}

// reader returns the input of an audit, to be read with the program's flags and messages.
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

// tell makes findings of what a reader noticed, or prints a line for each rule where no findings
// are wanted, and prints the rest of the problems.
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
	twice := make(map[string]bool) // how lines of tables begin that name another port for a LID that several ports have
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

// readAs reads a file that parse understands.
func readAs[T any](a *app, in *audit, name string, parse func(name string, data []byte) (T, error)) (t T, err error) {
	data, err := a.reader(in).ReadFile(name)
	if err != nil {
		return t, err
	}
	return parse(name, data)
}

// readTables reads a fabric and its tables, which are nil when there are none.
func (a *app) readTables(in *audit) (*fabric.Fabric, *lft.Tables, error) {
	err := a.reader(in).Tables()
	return in.State.Fabric, in.State.Tables, err
}

// readRouting reads a fabric, its tables, which are nil when there are none, and its lanes.
func (a *app) readRouting(in *audit) (*lft.Routing, error) {
	r := a.reader(in)
	if err := r.Tables(); err != nil {
		return nil, err
	}
	err := r.Lanes()
	return &lft.Routing{Fabric: r.State.Fabric, Tables: r.State.Tables, SL2VL: r.State.SL2VL, PathSLs: r.State.PathSLs}, err
}

// listUndecided lists the rules that what was read leaves undecided.
func (in *audit) listUndecided() []verify.Undecided {
	return capture.Undecided(in.State.Undecided, capture.Asked{Tables: in.HasTables(), Multicast: in.MFTs != "", Cables: in.wanted()})
}

// isFolderAlone returns true if -t names a folder and no other flag names a file: then all files of
// the folder are read.
func isFolderAlone(n *open.Files) bool { return n.OnlyTopology() && open.Folder(n.Topology) }
