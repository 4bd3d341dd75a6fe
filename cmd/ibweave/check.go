package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/ibweave/ibweave/audit/cabling"
	"github.com/ibweave/ibweave/audit/drift"
	"github.com/ibweave/ibweave/audit/policy"
	"github.com/ibweave/ibweave/compile/outdir"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/files"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mft"
	"github.com/ibweave/ibweave/report"
	"github.com/ibweave/ibweave/sminterface/dump"
	"github.com/ibweave/ibweave/verify"
)

// audit is what check is asked to look at.
type audit struct {
	topology    string
	lfts        string
	sl2vl       string // "" for none
	pathSL      string // "" for none
	mfts        string // "" for none
	groups      string // "" for none
	certificate string // "" for none
	unknownSLs  bool   // without path SLs they are unknown, as in a folder of dumps
	lostRows    bool   // the form of the forwarding tables does not show that a row is lost
	copying     verify.Copying
	buffer      verify.Buffer
	lenient     bool
	files       map[string]string // SHA-256 by path, as a manifest has them
	version     string            // of ibweave, by the manifest
	read        map[string]bool   // paths of files
	sums        map[string]string // SHA-256 by path of what was read, when not nil
	places      *places           // to be filled; nil when nobody needs it
	judge       bool              // make findings of what is odd in tables and files of a manifest
	undecided   []verify.Undecided
	findings    []verify.Finding
	demands
}

func (a *app) checkCommand() *cobra.Command {
	var (
		in             audit
		format, failOn string
		rules          bool
		explain        string
		copying        string
		reports        []string
		also           []reportFile
		source         string
	)
	cmd := &cobra.Command{
		Use:   "check [DIR | -t TOPOLOGY --lfts FILE | -t TOPOLOGY --wiring]",
		Short: "audit forwarding tables and cabling, wherever they come from",
		Long: `Audit forwarding tables: does every port reach every LID, without forwarding
loops and without credit loops? Does every receiver of a multicast group get one
copy, and nobody else any?

DIR is what compile wrote; its certificate is checked as well. Or it is a folder of
dumps: OpenSM's own, what pull wrote, or ibnetdiscover and dump_lfts output under
any names. What is in it is recognized by content, other files are ignored, and a
line on standard error says which files are taken: of several forms of the same,
ibnetdiscover text before opensm-subnet.lst, opensm-lfts.dump before dump_lfts
text before opensm.fdbs, and opensm.mcfdbs before dump_mfts text.

Otherwise the tables come from FILE: opensm-lfts.dump, what dump_lfts or ibroute print,
opensm.fdbs or the fdbs of ibdiagnet. TOPOLOGY is ibnetdiscover text or
opensm-subnet.lst. SL-to-VL tables are opensm-sl2vl.dump, what smpquery sl2vl
prints, or ibdmchk's; path SLs are path-sls.dump of compile or ibdmchk's. Without
tables everything is on one VL; with tables but no path SLs any path may have
any SL.

Multicast tables are opensm.mcfdbs or what dump_mfts prints, and groups what compile
takes, with their MLIDs, groups.json of a compiled directory, or what saquery -m
prints. MLIDs that no group has are taken to be sent to and received by all end
ports in their masks.

--wiring looks at the cables as well: it says what the fabric looks like, which
links are slow, and which cables are missing or crossed by that shape. --policy
holds the fabric and its tables to a file: an expected topology, required links,
limits, properties of the routing, severities, and waivers with an end. Both do
without tables, too.

Forms are recognized by content, zstd and gzip as well; - is standard input.`,
		Example: `  ibweave check tables
  ibweave check /var/log
  ibweave check -t fabric.txt --wiring
  ibweave check tables --policy policy.yaml --format sarif
  ibweave check tables --report sarif=ibweave.sarif --report junit=ibweave.xml
  ibweave check -t fabric.txt --lfts /var/log/opensm-lfts.dump
  dump_lfts | ibweave check -t fabric.txt --lfts - --format json
  ibweave check --explain credit-loop`,
		Args: a.maxArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case rules:
				return a.listRules()
			case explain != "":
				return a.explainRule(explain)
			}
			form, err := report.ParseForm(format)
			if err != nil {
				return usagef("--format: %w", err)
			}
			at, never, err := parseFailOn(failOn)
			if err != nil {
				return err
			}
			if err := in.copying.UnmarshalText([]byte(copying)); err != nil {
				return usagef("--%w", err)
			}
			if err := in.checkBuffer(cmd.Flags().Changed("vl-credits")); err != nil {
				return err
			}
			if err := a.resolveAudit(&in, args); err != nil {
				return err
			}
			if in.mfts == "" && cmd.Flags().Changed("copying") {
				return usagef("--copying says nothing without multicast tables")
			}
			if _, err := in.today(); err != nil {
				return err
			}
			if also, err = parseReports(reports); err != nil {
				return err
			}
			if located(form) || slices.ContainsFunc(also, func(f reportFile) bool { return located(f.form) }) {
				in.places = newPlaces(&in)
			}
			if err := a.readSource(&in, source); err != nil {
				return err
			}
			r, shape, err := a.check(cmd.Context(), &in)
			if err != nil {
				return err
			}
			opt := in.reportOptions(shape)
			opt.FailOn, opt.Never = at, never
			if err := report.Write(a.stdout, form, r, in.placed(form, opt, source)); err != nil {
				return err
			}
			for _, f := range also {
				if err := files.Write(f.name, func(w io.Writer) error {
					return report.Write(&printable{w: w}, f.form, r, in.placed(f.form, opt, source))
				}); err != nil {
					return err
				}
			}
			if opt.Fails(r) {
				return errFindings
			}
			return nil
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&in.topology, "topology", "t", "", "topology `FILE`")
	flags.StringVar(&in.lfts, "lfts", "", "`FILE` of forwarding tables")
	flags.StringVar(&in.sl2vl, "sl2vl", "", "`FILE` of SL-to-VL tables")
	flags.StringVar(&in.pathSL, "path-sl", "", "`FILE` with the SLs of paths")
	flags.StringVar(&in.mfts, "mfts", "", "`FILE` of multicast forwarding tables")
	flags.StringVarP(&in.groups, "groups", "g", "", "`FILE` of multicast groups, with their MLIDs")
	flags.StringVar(&copying, "copying", "independent", "how switches copy packets: independent as InfiniBand does, reserving, lock-step or wormhole")
	flags.IntVar(&in.buffer.Credits, "vl-credits", 0, "credits of 64 bytes that each VL of a port has, `N`, to see whether a packet fits; by default nobody knows")
	flags.IntVar(&in.buffer.MTU, "mtu", 4096, "greatest payload of packets in `BYTES`, for --vl-credits")
	flags.StringVar(&in.certificate, "certificate", "", "also check the proof in `FILE` that there is no credit loop")
	flags.BoolVar(&in.wiring, "wiring", false, "also look at the cables, and say what the fabric looks like")
	flags.StringVar(&in.policy, "policy", "", "hold everything to the policy in `FILE`; implies --wiring")
	a.nameFlag(cmd)
	flags.StringVar(&in.date, "date", "", "take waivers as of `DAY`, like 2026-12-31; today when not given")
	flags.BoolVar(&in.lenient, "lenient", false, "leave out of the input what is broken, and list it")
	flags.StringVar(&format, "format", "text", "text, json, sarif, junit, markdown or codequality")
	flags.StringArrayVar(&reports, "report", nil, "write the result into a file as well, `FORM=FILE`; once for each file")
	flags.StringVar(&source, "source", "", "in sarif and codequality, locate findings in the topology `FILE` instead of the files that were checked")
	flags.StringVar(&failOn, "fail-on", "error", "exit with 1 for findings from this severity on: error, warning, note or never; what is undecided fails with all but never")
	flags.BoolVar(&rules, "rules", false, "list the rules")
	flags.StringVar(&explain, "explain", "", "explain one `RULE`")
	return cmd
}

// checkBuffer sees that --vl-credits and --mtu make sense.
func (in *audit) checkBuffer(credits bool) error {
	switch {
	case credits && in.buffer.Credits <= 0:
		return usagef("--vl-credits %d: want 1 or more", in.buffer.Credits)
	case in.buffer.MTU < 256 || in.buffer.MTU > 4096:
		return usagef("--mtu %d: want 256 to 4096", in.buffer.MTU)
	}
	return nil
}

// parseFailOn reads --fail-on.
func parseFailOn(s string) (at verify.Severity, never bool, err error) {
	if s == "never" {
		return 0, true, nil
	}
	if err := at.UnmarshalText([]byte(s)); err != nil || at == verify.Clean {
		return 0, false, usagef("--fail-on %q: want error, warning, note or never", s)
	}
	return at, false, nil
}

// resolveAudit finds the files of a directory, or sees that all are named.
func (a *app) resolveAudit(in *audit, args []string) error {
	if len(args) == 0 {
		if in.topology == "" || in.lfts == "" && !in.wanted() {
			return usagef("check needs a directory of tables, or -t TOPOLOGY and --lfts FILE; or -t TOPOLOGY and --wiring or --policy FILE")
		}
		if in.lfts == "" && (in.sl2vl != "" || in.pathSL != "" || in.mfts != "" || in.certificate != "") {
			return usagef("other tables and certificates say nothing without forwarding tables, --lfts FILE")
		}
		if in.pathSL != "" && in.sl2vl == "" {
			return usagef("--path-sl says nothing without SL-to-VL tables, --sl2vl FILE")
		}
		if in.groups != "" && in.mfts == "" {
			return usagef("-g says nothing without multicast tables, --mfts FILE")
		}
		return oneStdin(in.topology, in.lfts, in.sl2vl, in.pathSL, in.mfts, in.groups, in.certificate, in.policy)
	}
	if in.topology != "" || in.lfts != "" || in.sl2vl != "" || in.pathSL != "" || in.mfts != "" || in.groups != "" {
		return usagef("check takes a directory or -t and --lfts, not both")
	}
	if err := oneStdin(in.policy, in.certificate); err != nil {
		return err
	}
	return a.resolve(in, args[0], !in.wanted())
}

// findCompiled finds the files of a directory that compile wrote.
func (in *audit) findCompiled(dir string) error {
	m, err := outdir.ReadManifest(dir)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return inputf("%s is no directory that compile wrote: it has no %s", dir, outdir.ManifestName)
		}
		return &inputError{err}
	}
	in.topology = filepath.Join(dir, outdir.TopologyName)
	// Compressed dumps may have been unpacked for OpenSM; there is no sum of those.
	find := func(form string) (path string, listed bool) {
		name, listed := m.Name(form)
		if path = filepath.Join(dir, name); name != form {
			if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
				path = filepath.Join(dir, form)
			}
		}
		return path, listed
	}
	in.lfts, _ = find(outdir.LFTsName)
	in.files, in.read, in.version = make(map[string]string, len(m.Files)), make(map[string]bool), m.Version
	for name, sum := range m.Files {
		in.files[filepath.Join(dir, name)] = sum
	}
	for name, at := range map[string]*string{
		outdir.SL2VLName:       &in.sl2vl,
		outdir.PathSLsName:     &in.pathSL,
		outdir.MCFDBsName:      &in.mfts,
		outdir.GroupsName:      &in.groups,
		outdir.CertificateName: &in.certificate,
	} {
		if path, listed := find(name); listed && *at == "" {
			*at = path
		}
	}
	return nil
}

// readAudited is readInput for a file that may be of a compiled directory: it says
// when the file is not as compile wrote it, with a finding if these are wanted.
func (a *app) readAudited(in *audit, name string) ([]byte, error) {
	return a.audited(in, a.begin(name))
}

// audited is readAudited for a file that is being read.
func (a *app) audited(in *audit, r *reading) ([]byte, error) {
	name := r.name
	raw, err := a.wait(r)
	if err != nil {
		return nil, err
	}
	data, err := decompressed(name, raw)
	if err != nil {
		return nil, err
	}
	want, listed := in.files[name]
	if in.read != nil {
		in.read[name] = true
	}
	if !listed && in.sums == nil {
		return data, nil
	}
	sum := sha256.Sum256(raw)
	text := hex.EncodeToString(sum[:])
	if in.sums != nil {
		in.sums[name] = text
	}
	if listed && text != want && in.judge {
		in.findings = append(in.findings, fileChanged(verify.Warning, "%s was changed since it was compiled; the verdict is about what it is now", name))
	} else if listed && text != want {
		fmt.Fprintf(a.stderr, "%s: warning: changed since it was compiled (%s has another SHA-256)\n", name, outdir.ManifestName)
	}
	return data, nil
}

// readTables reads a fabric and its tables, which are nil when there are none.
func (a *app) readTables(in *audit) (*fabric.Fabric, *lft.Tables, error) {
	text, err := a.readAudited(in, in.topology)
	if err != nil {
		return nil, nil, err
	}
	var lfts *reading
	if in.lfts != "" { // which is read while one CPU parses
		lfts = a.begin(in.lfts)
	}
	f, err := a.parseTopology(in, in.topology, text)
	if err != nil {
		return nil, nil, err
	}
	if in.places != nil {
		in.places.readTopology(text)
	}
	if lfts == nil {
		return f, nil, nil
	}
	tables, err := a.readLFTs(in, f, lfts)
	return f, tables, err
}

// readLFTs reads the forwarding tables of f from a file that is being read.
func (a *app) readLFTs(in *audit, f *fabric.Fabric, file *reading) (*lft.Tables, error) {
	text, err := a.audited(in, file)
	if err != nil {
		return nil, err
	}
	if in.places != nil {
		in.places.readTables(text)
	}
	s := a.startStage("parse "+in.lfts, 0)
	defer s.end()
	tables, problems, err := dump.ReadLFTs(in.lfts, text, f, dump.Options{Lenient: in.lenient, AnyPort: in.judge})
	if err != nil {
		return nil, err
	}
	a.dumpProblems(problems, in.lenient)
	in.undecide(problems, verify.UnicastRules, nil)
	in.lostRows = dump.Recognize(text) == dump.LFTs
	for i := range problems {
		if p := &problems[i]; p.Kind == dump.PrivateTables {
			rule, _ := verify.RuleByName(verify.AdaptiveRouting)
			in.findings = append(in.findings, verify.Finding{Rule: rule.Name, Severity: rule.Severity, Message: fmt.Sprintf("%s:%d: %v", p.File, p.Line, p.Err), Count: 1})
		}
	}
	return tables, nil
}

// readLanes reads SL-to-VL tables and path SLs into opt.
func (a *app) readLanes(in *audit, f *fabric.Fabric, opt *verify.Options) error {
	all, ends := in.laneRules()
	read := func(name string, parse func(data []byte) ([]dump.Problem, error)) error {
		if name == "" {
			return nil
		}
		data, err := a.readAudited(in, name)
		if err != nil {
			return err
		}
		s := a.startStage("parse "+name, 0)
		defer s.end()
		problems, err := parse(data)
		a.dumpProblems(problems, in.lenient)
		in.undecide(problems, all, ends)
		return err
	}
	err := read(in.sl2vl, func(data []byte) (problems []dump.Problem, err error) {
		opt.SL2VL, problems, err = dump.ReadSL2VL(in.sl2vl, data, f, dump.Options{Lenient: in.lenient})
		return problems, err
	})
	if err != nil {
		return err
	}
	return read(in.pathSL, func(data []byte) (problems []dump.Problem, err error) {
		opt.PathSLs, problems, err = dump.ReadPathSLs(in.pathSL, data, f, dump.Options{Lenient: in.lenient})
		ends = nil // the checker knows which SLs are unknown, and what that leaves undecided
		for i := range problems {
			if problems[i].Kind == dump.Missing {
				problems[i].Kind = dump.MissingEnds
			}
		}
		return problems, err
	})
}

// readMulticast reads multicast tables and groups, nil without tables.
func (a *app) readMulticast(in *audit, f *fabric.Fabric) (*verify.Multicast, error) {
	if in.mfts == "" {
		return nil, nil
	}
	m := &verify.Multicast{Copying: in.copying}
	data, err := a.readAudited(in, in.mfts)
	if err != nil {
		return nil, err
	}
	s := a.startStage("parse "+in.mfts, 0)
	tables, problems, err := dump.ReadMFTs(in.mfts, data, f, dump.Options{Lenient: in.lenient})
	s.end()
	if err != nil {
		return nil, err
	}
	m.Tables = tables
	a.dumpProblems(problems, in.lenient)
	in.undecide(problems, verify.MulticastRules, nil)
	if in.groups == "" {
		return m, nil
	}
	if data, err = a.readAudited(in, in.groups); err != nil {
		return nil, err
	}
	groups, problems, err := a.parseGroups(in.groups, data, f, in.lenient)
	if err != nil {
		return nil, err
	}
	in.undecide(problems, verify.MulticastRules, nil)
	m.Trees = []mft.Tree{}
	number := make(map[string]int) // a group with several MLIDs has one name
	for i := range groups {
		g := &groups[i]
		if g.MLID == 0 {
			return nil, inputf("%s: group %q has no mlid, so that nobody knows its masks; groups.json of a compiled directory has them", in.groups, g.Name)
		}
		if _, ok := number[g.Name]; !ok {
			number[g.Name] = i
		}
		m.Trees = append(m.Trees, mft.Tree{
			Group: number[g.Name], Name: g.Name, MGID: g.MGID, MLID: g.MLID, Senders: g.Senders, Receivers: g.Receivers, SL: g.SL,
		})
	}
	return m, nil
}

// check reads what an audit needs and verifies it. It says what the fabric looks like
// when that is asked for.
func (a *app) check(ctx context.Context, in *audit) (*verify.Result, *cabling.Shape, error) {
	x, err := a.audit(ctx, in)
	if err != nil {
		return nil, nil, err
	}
	return x.result, x.shape, nil
}

// auditResult is what an audit read and found.
type auditResult struct {
	fabric  *fabric.Fabric
	tables  *lft.Tables // nil without tables
	options verify.Options
	result  *verify.Result
	shape   *cabling.Shape // nil when nobody asked
}

// audit is check with what was read.
func (a *app) audit(ctx context.Context, in *audit) (x *auditResult, err error) {
	defer func() {
		if err != nil { // maybe for what was changed
			for i := range in.findings {
				fmt.Fprintln(a.stderr, in.findings[i].Message)
			}
		}
	}()
	x = &auditResult{options: verify.Options{Buffer: in.buffer}}
	in.judge = true
	if x.fabric, x.tables, err = a.readTables(in); err != nil {
		return nil, err
	}
	x.result = verify.Untested(x.fabric)
	if x.tables != nil {
		if x.result, err = a.checkTables(ctx, in, x.fabric, x.tables, &x.options); err != nil {
			return nil, err
		}
	}
	if err := a.checkFiles(ctx, in); err != nil {
		return nil, err
	}
	x.result.Add(in.findings...)
	x.result.Leave(in.undecided...)
	x.shape, err = a.demand(ctx, in, x.fabric, x.tables, x.result)
	return x, err
}

// checkTables verifies tables; what it reads with them goes into opt.
func (a *app) checkTables(ctx context.Context, in *audit, f *fabric.Fabric, tables *lft.Tables, opt *verify.Options) (*verify.Result, error) {
	if err := a.readLanes(in, f, opt); err != nil {
		return nil, err
	}
	var err error
	if opt.Multicast, err = a.readMulticast(in, f); err != nil {
		return nil, err
	}
	s := a.startStage("verify", 0)
	defer s.end()
	opt.Progress, opt.UnknownSLs, opt.LostRows = s.set, in.unknownSLs, in.lostRows
	r, err := verify.Check(ctx, f, tables, *opt)
	if err != nil {
		return nil, err
	}
	if in.certificate != "" {
		text, err := a.readAudited(in, in.certificate)
		if err != nil {
			return nil, err
		}
		c, err := verify.ReadCertificate(in.certificate, text)
		if err != nil {
			return nil, err
		}
		if err := c.Check(f, tables, *opt); err != nil {
			finding := verify.Finding{Rule: verify.CertificateRule, Severity: verify.Error, Message: err.Error(), Count: 1}
			var at *verify.DependencyError
			if errors.As(err, &at) {
				finding.LID, finding.Switch = at.LID, at.Out.GUID
			}
			r.Add(finding)
		}
	}
	return r, nil
}

func (a *app) listRules() error {
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	for _, r := range append(policy.AllRules(), drift.Rules...) {
		fmt.Fprintf(w, "%s\t%s\t%s\n", r.Name, r.Severity, r.Summary)
	}
	return w.Flush()
}

func (a *app) explainRule(name string) error {
	r, ok := policy.RuleByName(name)
	if i := slices.IndexFunc(drift.Rules, func(r verify.Rule) bool { return r.Name == name }); i >= 0 {
		r, ok = &drift.Rules[i], true
	}
	if !ok {
		return usagef("--explain %q: no such rule; --rules lists them", name)
	}
	_, err := fmt.Fprintf(a.stdout, "%s (%s): %s\n\n%s\n", r.Name, r.Severity, r.Summary, strings.TrimSpace(r.Explain))
	return err
}
