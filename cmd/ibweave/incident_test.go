package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/topology"
)

// scene is a folder with fabrics and tables that incidents change.
type scene struct {
	t   *testing.T
	dir string
}

func (s *scene) ibweave(want int, args ...string) string {
	s.t.Helper()
	var out, errs bytes.Buffer
	if got := run(args, strings.NewReader(""), &out, &errs); got != want {
		s.t.Fatalf("%v: exit status %d, want %d: %s\n%s", args, got, want, &errs, &out)
	}
	return out.String()
}

func (s *scene) at(name string) string { return filepath.Join(s.dir, name) }

func (s *scene) read(name string) string {
	s.t.Helper()
	data, err := os.ReadFile(s.at(name))
	if err != nil {
		s.t.Fatal(err)
	}
	return string(data)
}

func (s *scene) write(name, text string) string {
	s.t.Helper()
	if err := os.WriteFile(s.at(name), []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
	return s.at(name)
}

// recabled is topology text with other cables.
func (s *scene) recabled(text string, edit func(f *fabric.Fabric, cables []fabric.Cable) []fabric.Cable) string {
	s.t.Helper()
	f, _, err := topology.Parse("text", []byte(text), topology.Options{})
	if err == nil {
		f, err = f.WithCables(edit(f, f.Cables()))
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return string(topology.Append(nil, f))
}

// cableAt returns the index of the cable between two ports, named as in messages.
func cableAt(f *fabric.Fabric, cables []fabric.Cable, a, b string) int {
	return slices.IndexFunc(cables, func(c fabric.Cable) bool {
		x, y := f.PortName(c.A), f.PortName(c.B)
		return x == a && y == b || x == b && y == a
	})
}

// twoFabrics is a fabric beside another with other GUIDs and names and the same LIDs, and a
// cable between port 4 of "leaf 2" and of "rack 5".
func twoFabrics(text string) string {
	up := func(hex string) string {
		n, _ := strconv.ParseUint(hex, 16, 64)
		return strconv.FormatUint(n+0x1000000, 16)
	}
	other := regexp.MustCompile(`guid=0x[0-9a-f]+`).ReplaceAllStringFunc(text, func(m string) string {
		name, hex, _ := strings.Cut(m, "=0x")
		return name + "=0x" + up(hex)
	})
	other = regexp.MustCompile(`\([0-9a-f]{6}\)`).ReplaceAllStringFunc(other, func(m string) string { return "(" + up(m[1:7]) + ")" })
	other = regexp.MustCompile(`"[SH]-[0-9a-f]{16}"`).ReplaceAllStringFunc(other, func(m string) string {
		return fmt.Sprintf(`%s%016s"`, m[:3], up(m[3:19]))
	})
	both := text + strings.NewReplacer("leaf", "rack", "spine", "top").Replace(other[strings.Index(other, "vendid"):])
	for _, end := range [][2]string{{"leaf 2", `"S-0000000001200005"[4]`}, {"rack 5", `"S-0000000000200002"[4]`}} {
		both = regexp.MustCompile(`(?m)^Switch.*# "`+end[0]+`".*\n`).ReplaceAllString(both, "${0}[4]\t"+end[1]+"\n")
	}
	return both
}

// splitTables splits a dump of forwarding tables into those of switches, the first part being
// what stands before.
func splitTables(dump string) []string {
	starts := regexp.MustCompile(`(?m)^Unicast lids`).FindAllStringIndex(dump, -1)
	parts := []string{dump[:starts[0][0]]}
	for i, at := range starts {
		end := len(dump)
		if i+1 < len(starts) {
			end = starts[i+1][0]
		}
		parts = append(parts, dump[at[0]:end])
	}
	return parts
}

// reversed is topology text with the nodes the other way round.
func reversed(text string) string {
	nodes := strings.Split(strings.Trim(text, "\n"), "\n\n")
	slices.Reverse(nodes[1:])
	return strings.Join(nodes, "\n\n") + "\n"
}

// Ways in which a fabric breaks at night: the first ten lines that check prints name the cause.
func TestIncidents(t *testing.T) {
	s := &scene{t, t.TempDir()}
	s.ibweave(0, "gen", "fattree", "--radix", "8", "--hosts-per-leaf", "3", "--aggregation-nodes", "-o", s.at("made"))
	s.ibweave(0, "compile", "-t", s.at("made"), "-e", "updn", "-o", s.at("whole"))
	s.ibweave(0, "gen", "tree", "--leaves", "2", "--rails", "4", "--hosts", "8", "--spines", "4", "--ports", "16", "--names", "site", "-o", s.at("rails"))
	s.ibweave(0, "gen", "torus", "--dims", "5x5", "-o", s.at("torus"))
	s.ibweave(0, "compile", "-t", s.at("torus"), "-e", "layered", "-o", s.at("layered"))
	text, lfts := s.read("whole/fabric.ibnetdiscover"), s.read("whole/opensm-lfts.dump")
	whole := s.at("whole/fabric.ibnetdiscover")
	lidOf := func(name string) int {
		m := regexp.MustCompile(`(?m)^\[\d+\]\([0-9a-f]+\) .*\n`).FindAllString(text[strings.Index(text, `# "`+name+`"`+"\n"):], 1)
		n, err := strconv.Atoi(regexp.MustCompile(`lid (\d+)`).FindStringSubmatch(m[0])[1])
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	part := func(name string) (parts []string, i int) {
		parts = splitTables(lfts)
		for i := range parts {
			if strings.Contains(parts[i][:strings.Index(parts[i], "\n")+1], "('"+name+"')") {
				return parts, i
			}
		}
		t.Fatal(name)
		return nil, 0
	}

	dead := s.recabled(text, func(f *fabric.Fabric, cables []fabric.Cable) []fabric.Cable {
		i := cableAt(f, cables, `"leaf 2"[7]`, `"spine 2"[3]`)
		return slices.Delete(cables, i, i+1)
	})
	have, wrong := lidOf("host 0 leaf 1"), lidOf("host 0 leaf 4")
	twice := strings.ReplaceAll(text, fmt.Sprintf(`# lid %d lmc`, wrong), fmt.Sprintf(`# lid %d lmc`, have))
	twice = strings.ReplaceAll(twice, fmt.Sprintf(`"host 0 leaf 4" lid %d `, wrong), fmt.Sprintf(`"host 0 leaf 4" lid %d `, have))
	intruder := fmt.Sprintf(`^error: duplicate-lid: 1 port has the LID of another one: "host 0 leaf 4"\[1\] at "leaf 4"\[1\] is the intruder: it has LID %d, which the tables lead to "host 0 leaf 1"\[1\] at "leaf 1"\[1\]; the tables have LID %d for it, `, have, wrong)
	backAgain := fmt.Sprintf(`^    also unassigned-lid, stale-entry\n\nundecided: .* LID %d .*; a capture decides once each port has its own LID again$`, wrong)
	for _, tc := range []struct {
		name string
		make func() []string // arguments of check
		want []string        // expressions, each of which a line fits
	}{
		{"dead cable under static tables", func() []string {
			return []string{"-t", s.write("dead", dead), "--lfts", s.at("whole/opensm-lfts.dump")}
		}, []string{`^error: unicast-unreachable: no cable at "leaf 2"\[7\] and "spine 2"\[3\], most likely one that is gone, and the tables use it: \d+ pairs of hosts`}},
		{"dead cable under the plugin", func() []string {
			s.ibweave(0, "compile", "-t", s.write("dead", dead), "-e", "updn", "-o", s.at("after"))
			return []string{s.at("after"), "--wiring"}
		}, []string{`^error: missing-cable: 1 cable missing between "leaf 2"\[7\] and "spine 2"\[3\]$`}},
		{"swapped rails", func() []string {
			return []string{s.write("swapped", s.recabled(s.read("rails"), func(f *fabric.Fabric, cables []fabric.Cable) []fabric.Cable {
				i := cableAt(f, cables, `"node0003 mlx5_0"[1]`, `"MF0;unit00-leaf00:IS5035/U1"[3]`)
				j := cableAt(f, cables, `"node0003 mlx5_1"[1]`, `"MF0;unit00-leaf01:IS5035/U1"[3]`)
				cables[i].A, cables[j].A = cables[j].A, cables[i].A
				return cables
			}))}
		}, []string{`^error: rail-swapped: .* in each other's places`}},
		{"slow cable", func() []string {
			slow := s.recabled(text, func(f *fabric.Fabric, cables []fabric.Cable) []fabric.Cable {
				cables[cableAt(f, cables, `"leaf 2"[7]`, `"spine 2"[3]`)].Link.Speed = fabric.SDR
				return cables
			})
			return []string{"-t", s.write("slow", slow), "--lfts", s.at("whole/opensm-lfts.dump")}
		}, []string{`^error: link-degraded: "leaf 2"\[7\] to "spine 2"\[3\] is 4xSDR, .* are 4xQDR; \d+ routes cross it$`, `^    the GUID of "leaf 2" is 0x[0-9a-f]{16}$`}},
		{"missing row in a dump", func() []string {
			parts, i := part("leaf 3")
			return []string{"-t", whole, "--lfts", s.write("row", strings.Join(append(parts[:i:i], parts[i+1:]...), ""))}
		}, []string{`^error: unicast-unreachable: "leaf 3" has no forwarding table, or an empty one: \d+ pairs`, `^    hosts on "leaf 3" reach no others, and no others reach them$`}},
		{"half-written tables", func() []string {
			parts := splitTables(lfts)
			for i := 1; i < len(parts); i += 2 {
				parts[i] = regexp.MustCompile(`(?m)^0x00(1[5-9a-f]|[2-9a-f].) .*\n`).ReplaceAllString(parts[i], "")
			}
			return []string{"-t", whole, "--lfts", s.write("half", strings.Join(parts, ""))}
		}, []string{`^error: unicast-unreachable: "leaf 0", "leaf 2", "leaf 4", "leaf 6", "spine 0" and "spine 2" have no entries for \d+ LIDs, 21-\d+: \d+ pairs`, `^    not whole blocks of 64 LIDs, so no failed write: `}},
		{"half-written change of roots", func() []string {
			s.ibweave(0, "gen", "tree", "--leaves", "8", "--hosts", "16", "--spines", "4", "--parallel", "4", "--ports", "36", "-o", s.at("tree"))
			s.ibweave(0, "compile", "-t", s.at("tree"), "-e", "updn", "-o", s.at("old"))
			s.ibweave(0, "compile", "-t", s.at("tree"), "-e", "updn", "--roots", "0x20000b,0x20000a,0x200009,0x200008", "-o", s.at("new"))
			parts := append(splitTables(s.read("new/opensm-lfts.dump"))[:6], splitTables(s.read("old/opensm-lfts.dump"))[6:]...)
			return []string{"-t", s.at("old/fabric.ibnetdiscover"), "--lfts", s.write("mixed", strings.Join(parts, "")), "--fail-on", "warning"}
		}, []string{`^warning: far-from-bound: tables of two routings, as of a change half written: .* lead LIDs by other neighbors than "leaf 0", "leaf 1", "leaf 2", "leaf 3", "leaf 4", which agree; the greatest load`, `^    the tables do not tell which of the two sets is the older one: ibweave diff `}},
		{"wrong lanes", func() []string {
			// "switch 0,0" drops SL 1 on its way out by port 1.
			lanes := strings.ReplaceAll(s.read("layered/opensm-sl2vl.dump"), "\r", "")
			end := strings.Index(lanes, "\nSwitch ")
			wrong := regexp.MustCompile(`(?m)^(\d+ +1 +: 0 +)1 `).ReplaceAllString(lanes[:end], "${1}15 ") + lanes[end:]
			return []string{"-t", s.at("layered/fabric.ibnetdiscover"), "--lfts", s.at("layered/opensm-lfts.dump"), "--sl2vl", s.write("lanes", wrong), "--path-sl", s.at("layered/path-sls.dump")}
		}, []string{`^error: sl-dropped: the SL-to-VL table of "switch 0,0" drops SL 1 \(VL 15\) from any input port to output port 1: \d+ pair`}},
		{"lanes that were not read", func() []string {
			return []string{"-t", s.at("layered/fabric.ibnetdiscover"), "--lfts", s.at("layered/opensm-lfts.dump")}
		}, []string{`^error: credit-loop: \d+ channels wait for each other if all packets are on one VL, which is assumed without SL-to-VL tables \(--sl2vl FILE, with --path-sl FILE\); shortest cycle`}},
		{"duplicate LID", func() []string {
			return []string{"-t", s.write("twice", twice), "--lfts", s.at("whole/opensm-lfts.dump")}
		}, []string{intruder, backAgain}},
		{"duplicate LID, the intruder first in the text", func() []string {
			return []string{"-t", s.write("reversed", reversed(twice)), "--lfts", s.at("whole/opensm-lfts.dump")}
		}, []string{intruder, backAgain}},
		{"duplicate LID without tables", func() []string {
			return []string{s.write("reversed", reversed(twice))}
		}, []string{`^error: duplicate-lid: 1 port has the LID of another one: "host 0 leaf 1"\[1\] at "leaf 1"\[1\] and "host 0 leaf 4"\[1\] at "leaf 4"\[1\] have LID \d+; which of them is the intruder is not known without forwarding tables`}},
		{"flapping host", func() []string {
			return []string{"-t", s.write("flap", withoutNode(text, 0x100008)), "--lfts", s.at("whole/opensm-lfts.dump")}
		}, []string{`\A(.*\n){0,3}warning: stale-entry: "host 1 leaf 1" 0x[0-9a-f]{16} \(LID \d+\) is gone: the tables lead to "leaf 1"\[2\], which has no cable; look at the host`,
			`^undecided: there are forwarding entries for LID \d+ of 0x[0-9a-f]{16} 'host 1 leaf 1', which no port of the topology has; a capture with what is gone decides`}},
		{"flapping host, with cables", func() []string {
			return []string{"-t", s.at("flap"), "--lfts", s.at("whole/opensm-lfts.dump"), "--wiring"}
		}, []string{`^warning: stale-entry: "host 1 leaf 1" 0x[0-9a-f]{16} \(LID \d+\) is gone: .*\n +also port-down\n`}},
		{"two fabrics cabled together", func() []string {
			return []string{s.write("both", twoFabrics(text))}
		}, []string{`^error: duplicate-lid: \d+ ports have the LIDs of other ones, so that two fabrics may be cabled together`, `^warning: extra-cable: "leaf 2"\[4\] to "rack 5"\[4\]`}},
		{"aggregation node unreachable", func() []string {
			all := strings.Split(lfts, "\n")
			lid := regexp.MustCompile(`(?m)^\[9\].*Aggregation Node" lid (\d+)`).FindStringSubmatch(text)[1]
			n, _ := strconv.Atoi(lid)
			kept := all[:0]
			for _, line := range all {
				if !strings.HasPrefix(line, fmt.Sprintf("0x%04x ", n)) {
					kept = append(kept, line)
				}
			}
			return []string{"-t", whole, "--lfts", s.write("aggregation", strings.Join(kept, "\n"))}
		}, []string{`^error: unicast-unreachable: no switch has an entry for "Mellanox Technologies Aggregation Node" 0x[0-9a-f]+\[1\] \(LID \d+\): \d+ pairs with an aggregation node at an end and \d+ pairs with switches lost$`, `^    not routed by the subnet manager$`}},
		{"one wrong entry", func() []string {
			parts, i := part("spine 1")
			entry := fmt.Sprintf("0x%04x ", lidOf("host 1 leaf 5"))
			parts[i] = strings.Replace(parts[i], entry+"006", entry+"002", 1) // and "leaf 1" sends it by "spine 1"
			return []string{"-t", whole, "--lfts", s.write("wrong", strings.Join(parts, ""))}
		}, []string{`^error: unicast-loop: "spine 1" has a wrong entry for "host 1 leaf 5"\[1\] \(LID \d+\): port 2, which leads to "leaf 1", and other LIDs of "leaf 5" go by port 6: packets loop`}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s.t = t
			out := s.ibweave(1, append([]string{"check"}, tc.make()...)...)
			first := strings.SplitAfter(out, "\n")
			first = first[:min(len(first), 10)]
			for _, want := range tc.want {
				if !regexp.MustCompile(`(?m)` + want).MatchString(strings.Join(first, "")) {
					t.Errorf("no %s in the first ten lines:\n%s", want, out)
				}
			}
			if strings.Contains(out, " lost\n") && strings.Contains(out, " have less") {
				t.Errorf("the load of tables that lose pairs is compared with a bound:\n%s", out)
			}
			if n := strings.Count(out, "\n"); n > 60 {
				t.Errorf("%d lines", n)
			}
		})
	}
	s.t = t
	// Whichever of two ports with one LID is the first in the text, the same is printed.
	var lines [2]string
	for i, name := range []string{"twice", "reversed"} {
		var out, errs bytes.Buffer
		run([]string{"check", "-t", s.at(name), "--lfts", s.at("whole/opensm-lfts.dump")}, strings.NewReader(""), &out, &errs)
		lines[i] = out.String() + errs.String()
	}
	if lines[0] != lines[1] || !strings.Contains(lines[0], "is the intruder") {
		t.Errorf("one order:\n%s\nthe other:\n%s", lines[0], lines[1])
	}
	// docs/dev/check.md quotes what is undecided of a host that is gone.
	flat := func(text string) string { return strings.Join(strings.Fields(text), " ") }
	flap := s.ibweave(1, "check", "-t", s.at("flap"), "--lfts", s.at("whole/opensm-lfts.dump"))
	_, undecided, _ := strings.Cut(flap, "\nundecided: ")
	undecided, _, _ = strings.Cut(undecided, "\n\n")
	page, err := os.ReadFile("../../docs/dev/check.md")
	if err != nil || undecided == "" || !strings.Contains(flat(string(page)), flat(undecided)) {
		t.Errorf("docs/dev/check.md does not quote %q (%v)", undecided, err)
	}
	// As its help says, compare does not judge tables far from the bound, of which check warns.
	mixed := s.ibweave(0, "compare", "-t", s.at("old/fabric.ibnetdiscover"), "-e", "updn", "--lfts", s.at("mixed"), "--bisections", "2")
	if help := flat(s.ibweave(0, "compare", "--help")); !regexp.MustCompile(`(?m)^verdict +clean +clean$`).MatchString(mixed) || !strings.Contains(help, "compare does not judge tables whose load is far from the proven bound") {
		t.Errorf("%s\n%s", help, mixed)
	}
}
