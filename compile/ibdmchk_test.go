package compile_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/compile/outdir"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mft"
	"github.com/ibweave/ibweave/sminterface/dump"
	"github.com/ibweave/ibweave/sminterface/ibsim"
	"github.com/ibweave/ibweave/state"
	"github.com/ibweave/ibweave/verify"
)

// multicastComplaints has ibdmchk look at the multicast tables in a file of a
// compiled directory: the lines with which it complains of them, by MLID, none
// when it is content.
func multicastComplaints(t *testing.T, dir, mcfdbs string) (lines []string) {
	t.Helper()
	short.NeedPrograms(t)
	program := short.Must(ibsim.Find("ibdmchk"))(t)
	cmd := exec.CommandContext(t.Context(), program, "-s", outdir.SubnetListName, "-f", outdir.FDBsName, "-m", mcfdbs)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(out), "-I- Scanning all multicast groups")
	section, _, ended := strings.Cut(section, "\n-----")
	if !ok || !ended {
		t.Fatalf("ibdmchk says nothing of multicast:\n%.3000s", out)
	}
	for line := range strings.Lines(section) {
		if !strings.HasPrefix(line, "-I-") && strings.HasPrefix(line, "-") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}

// TestIBDMChkOnMulticast has trees that ibdmchk can judge: one for each group,
// with all members sending. It is content with ours, and whenever it complains of
// a tree with a bit flipped so do we. The other way round does not hold: it starts
// at one switch, knows no members, and does not follow what is not symmetric
// (docs/dev/multicast.md).
func TestIBDMChkOnMulticast(t *testing.T) {
	for i, on := range short.Part(2, fabricsOnTrial(t)[:5]) {
		scheme, engineName := "updn-tree", "updn"
		if on.engines["xy"] != nil {
			scheme, engineName = "comb", "xy"
		}
		t.Run(on.name, func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(13, uint64(i)))
			opt := compile.Options{LIDs: lft.LIDOptions{Policy: lft.DenseLIDs}, Multicast: scheme}
			opt.Groups = func(f *fabric.Fabric) (list []mft.Group, _ error) {
				for i := range 20 {
					g := randomGroup(f, r, i)
					g.Receivers = slices.DeleteFunc(g.Receivers, func(p fabric.PortID) bool { return f.IsSwitch(f.Owner(p)) })
					if len(g.Receivers) < 2 {
						g.Receivers = f.CAPorts()[:2]
					}
					g.Senders = g.Receivers
					list = append(list, g)
				}
				return list, nil
			}
			res := short.Must(compile.Run(t.Context(), on.f, engine(t, engineName), opt))(t)
			dir := filepath.Join(t.TempDir(), "tables")
			short.Must(outdir.Write(t.Context(), dir, res, outdir.Options{InstallDir: "/x"}))(t)
			if lines := multicastComplaints(t, dir, outdir.MCFDBsName); len(lines) > 0 || res.Verify.Verdict != verify.VerdictClean {
				t.Fatalf("verify: %s; ibdmchk:\n%s", res.Verify.Verdict, strings.Join(lines, "\n"))
			}
			f, tables := res.Routing.Fabric, res.Plan.Tables
			both, ours, neither := 0, 0, 0
			for range short.Of(max(1, *trials/4), 4) {
				flipped := mft.NewTables(f)
				victim := tables.MLIDs()[r.IntN(len(tables.MLIDs()))]
				var which fabric.PortID
				for _, mlid := range tables.MLIDs() {
					ports := slices.Clone(tables.Ports(mlid))
					if mlid == victim {
						s := f.Owner(ports[r.IntN(len(ports))])
						which = f.Port(s, fabric.PortNum(1+r.IntN(int(f.Node(s).NumPorts))))
						if r.IntN(2) == 0 {
							which = ports[r.IntN(len(ports))]
						}
						if at, ok := slices.BinarySearch(ports, which); ok {
							ports = slices.Delete(ports, at, at+1)
						} else {
							ports = slices.Insert(ports, at, which)
						}
					}
					flipped.Add(mlid, ports)
				}
				var text bytes.Buffer
				short.Check(t, dump.WriteMCFDBs(&text, flipped, dump.WriteOptions{}))
				short.Check(t, os.WriteFile(filepath.Join(dir, "flipped"), text.Bytes(), 0o600))
				after := short.Must(verify.Check(t.Context(), &state.State{Fabric: f, Tables: res.Routing.Tables, SL2VL: res.Routing.SL2VL, PathSLs: res.Routing.PathSLs, Multicast: &mft.Plan{Tables: flipped, Trees: res.Plan.Trees}}, verify.Options{}))(t)
				found := slices.ContainsFunc(after.Findings, func(x verify.Finding) bool { return strings.HasPrefix(x.Rule, "multicast-") })
				lines := multicastComplaints(t, dir, "flipped")
				switch {
				case found && len(lines) > 0:
					both++
				case found:
					ours++
				case len(lines) > 0:
					t.Errorf("%s flipped for %#x: verify finds nothing, ibdmchk says\n%s", f.PortName(which), uint16(victim), strings.Join(lines, "\n"))
				default:
					neither++
				}
			}
			t.Logf("bits flipped: found by both %d, by verify alone %d, by neither %d", both, ours, neither)
			if both == 0 {
				t.Error("ibdmchk never complained")
			}
		})
	}
}
