package examples

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/state/open"
	"github.com/ibweave/ibweave/verify"
)

// certificateFiles are those that check_certificate.py reads.
var certificateFiles = []string{"certificate.txt", "fabric.ibnetdiscover", "opensm-lfts.dump", "opensm-sl2vl.dump", "path-sls.dump"}

// TestCertificateChecker has check_certificate.py and ibweave judge the certificates of directories in which a number, an
// entry, a lane, the SL of paths or a cable was changed at random: both say the same of each.
func TestCertificateChecker(t *testing.T) {
	short.NeedPrograms(t)
	t.Parallel()
	script := short.Must(os.ReadFile("certificate/check_certificate.py"))(t)
	if n := bytes.Count(script, []byte("\n")); n > 200 || bytes.Contains(script, []byte("import ibweave")) {
		t.Errorf("check_certificate.py has %d lines, want at most 200", n)
	}
	work := t.TempDir()
	var whole []map[string][]byte
	for i, made := range []string{
		"gen torus --dims 3x3 -o f; ibweave compile -t f -e layered",
		"gen torus --dims 4x3 -o f; ibweave compile -t f -e xy --sl2vl dateline",
		"gen fattree --radix 4 --levels 2 -o f; ibweave compile -t f -e updn",
		"gen irregular --switches 8 --degree 3 --hosts 9 --seed 4 -o f; ibweave compile -t f -e updn --lmc 1",
		"gen mesh --dims 3x3 -o f; ibweave compile -t f -e xy --vls 2 --sl2vl spread",
	} {
		if out, status := runShell(t, work, "-c", fmt.Sprintf("ibweave %s -o whole%d", made, i)); status != 0 {
			t.Fatalf("%s: %s", made, out)
		}
		texts := map[string][]byte{}
		for _, name := range certificateFiles {
			if data, err := os.ReadFile(filepath.Join(work, fmt.Sprint("whole", i), name)); err == nil {
				texts[name] = data
			}
		}
		whole = append(whole, texts)
	}
	rng := rand.New(rand.NewPCG(46, 12))
	all, held, unread := 1000, 0, 0
	for first := 0; first < all; first += 100 {
		var dirs []string
		want := map[string]error{}
		for i := first; i < first+100; i++ {
			texts := mutate(rng, whole[i%len(whole)], i >= len(whole)) // of the first ones the certificates hold
			dir := filepath.Join(work, fmt.Sprint("m", i))
			short.Check(t, os.Mkdir(dir, 0o755))
			for name, data := range texts {
				short.Check(t, os.WriteFile(filepath.Join(dir, name), data, 0o644))
			}
			s, err := open.Path(t.Context(), dir, open.Options{})
			if err == nil {
				var c *verify.Certificate
				if c, err = verify.ReadCertificate("certificate.txt", texts["certificate.txt"]); err == nil {
					err = c.Check(s, verify.Independent)
				}
			} else {
				unread++
			}
			if want[dir] = err; err == nil {
				held++
			}
			dirs = append(dirs, dir)
		}
		out, _ := exec.Command("python3", append([]string{"certificate/check_certificate.py"}, dirs...)...).CombinedOutput()
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		short.MustEqual(t, len(lines), len(dirs), "lines of directories", out)
		for i, dir := range dirs {
			if says := strings.HasPrefix(lines[i], dir+": the certificate holds"); says != (want[dir] == nil) {
				t.Errorf("ibweave says %v, and check_certificate.py %s", want[dir], lines[i])
			}
			short.Check(t, os.RemoveAll(dir))
		}
	}
	t.Logf("%d of %d certificates held, %d directories could not be read", held, all, unread)
	if held < all/20 || held > all*2/3 || unread > all/5 {
		t.Error("that tests too little")
	}
}

// mutate changes a line of one of the texts of a directory, or two.
func mutate(rng *rand.Rand, whole map[string][]byte, changed bool) map[string][]byte {
	texts := map[string][]byte{}
	var names []string
	for _, name := range certificateFiles {
		if texts[name] = whole[name]; whole[name] == nil {
			delete(texts, name)
			continue
		}
		names = append(names, name)
	}
	for again := changed; again; again = rng.IntN(4) == 0 {
		name := names[rng.IntN(len(names))]
		lines := strings.SplitAfter(string(texts[name]), "\n")
		pick := func(form string) (at int, m []string) {
			for range 1000 {
				at = rng.IntN(len(lines))
				if m = regexp.MustCompile(form).FindStringSubmatch(lines[at]); m != nil {
					return at, m
				}
			}
			return -1, nil
		}
		switch name {
		case "certificate.txt":
			at, m := pick(`^(0x\w+ \d+ \d+) (\d+)\n`)
			number, _ := strconv.Atoi(m[2])
			if to, other := pick(`^(0x\w+ \d+ \d+) (\d+)\n`); rng.IntN(3) == 0 {
				lines[at], lines[to] = m[1]+" "+other[2]+"\n", other[1]+" "+m[2]+"\n"
			} else {
				lines[at] = fmt.Sprintf("%s %d\n", m[1], max(0, number+rng.IntN(7)-3))
			}
			if head := regexp.MustCompile(`channels (\d+)`).FindStringSubmatch(lines[0]); rng.IntN(6) == 0 {
				n, _ := strconv.Atoi(head[1])
				lines[0] = strings.Replace(lines[0], head[0], fmt.Sprint("channels ", n-1), 1)
				lines[at] = ""
			}
		case "fabric.ibnetdiscover": // a cable goes
			if at, m := pick(`^\[(\d+)\](?:\(\w+\))?\s+"([SH]-\w+)"\[(\d+)\]`); at >= 0 {
				node := ""
				for _, line := range lines[:at] {
					if head := regexp.MustCompile(`^(?:Switch|Ca)\t\d+ "([SH]-\w+)"`).FindStringSubmatch(line); head != nil {
						node = head[1]
					}
				}
				lines[at] = ""
				back := regexp.MustCompile(`^\[` + m[3] + `\](?:\(\w+\))?\s+"` + node + `"\[` + m[1] + `\]`)
				for i, line := range lines {
					if back.MatchString(line) {
						lines[i] = ""
					}
				}
			}
		case "opensm-lfts.dump":
			if at, m := pick(`^(0x\w{4}) (\d{3})( .*\n)`); rng.IntN(5) == 0 {
				lines[at] = fmt.Sprintf("%s 255%s", m[1], m[3])
			} else {
				lines[at] = fmt.Sprintf("%s %03d%s", m[1], rng.IntN(6), m[3])
			}
		case "opensm-sl2vl.dump":
			at, m := pick(`^(\d+ +\d+ +:)((?: +\d+)+)`)
			vls := strings.Fields(m[2])
			vls[rng.IntN(4)] = strconv.Itoa([]int{0, 1, 2, 15}[rng.IntN(4)])
			lines[at] = m[1] + " " + strings.Join(vls, " ") + "\n"
		case "path-sls.dump":
			at, m := pick(`^(dlid \S+ sl) (\d+|\?)`)
			lines[at] = m[1] + " " + []string{"0", "1", "2", "?"}[rng.IntN(4)] + "\n"
		}
		texts[name] = []byte(strings.Join(lines, ""))
	}
	return texts
}
