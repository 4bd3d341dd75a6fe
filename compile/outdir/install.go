package outdir

import (
	"bufio"
	"encoding/json"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft/adaptive"
	"github.com/ibweave/ibweave/verify"
)

// The files of OpenSM that an installation replaces, and the archive of the old ones.
const (
	siteConfig = "/etc/opensm/opensm.conf"
	siteLIDs   = "/var/cache/opensm/guid2lid"
	siteCopy   = "/etc/opensm/before-ibweave.tar"
)

// mergeLIDs is an awk program for two guid2lid files. It prints the first one, and those lines
// of the second that share no GUID and no LID with it: of two ports with one LID, OpenSM might
// take either. It compares LIDs as text, since all have the same number of digits.
const mergeLIDs = `NF<3{next}NR==FNR{a[$1]=$2"";b[$1]=$3""}NR>FNR{if($1 in a)next;for(g in a)if($2""<=b[g]&&$3"">=a[g])next}1`

// InstallCommands returns shell commands that copy the compiled directory dir, with these
// files, to opt.InstallDir, and add lines to the site's opensm.conf, which keeps its other
// options. plugin adds the lines for the plugin, static those for the static files; each is
// nil if files lacks that configuration. Both first archive the files that they replace; undo
// restores these. Ports outside the fabric keep the LIDs that OpenSM gave them.
func InstallCommands(dir string, files []string, opt Options) (plugin, static, undo []string) {
	quote := func(s string) string {
		if s != "" && !strings.ContainsFunc(s, func(c rune) bool {
			return !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("_-./+,:@%", c))
		}) {
			return s
		}
		return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
	}
	const stop, start = "systemctl stop opensm", "systemctl start opensm" // it reads guid2lid when it starts
	replaced := siteConfig + " " + siteLIDs
	keep := "tar -cPf " + siteCopy + " --ignore-failed-read " + replaced
	commands := []string{stop, keep}
	remove := "tar -tPf " + siteCopy + " >/dev/null && rm -f " + replaced // only if the archive is readable
	undo = []string{stop}
	if abs, err := filepath.Abs(dir); err != nil || abs != filepath.Clean(opt.InstallDir) {
		to := quote(opt.InstallDir)
		commands = []string{stop, keep + " " + to, "mkdir -p " + to, "cp " + quote(dir) + "/* " + to + "/"}
		names := make([]string, len(files))
		for i, name := range files {
			names[i] = quote(strings.TrimSuffix(name, ZstdSuffix))
		}
		undo = append(undo, remove+" && (cd "+to+" && rm -f "+strings.Join(names, " ")+")", "rmdir --ignore-fail-on-non-empty "+to)
	} else {
		undo = append(undo, remove)
	}
	undo = append(undo, "tar -xpPf "+siteCopy, "rm "+siteCopy, start)
	if opt.Zstd {
		commands = append(commands, "zstd -d -q -f --rm "+quote(opt.InstallDir)+"/*"+ZstdSuffix)
	}
	commands = append(commands,
		"cat "+siteLIDs+" 2>/dev/null | awk '"+mergeLIDs+"' "+quote(filepath.Join(opt.InstallDir, GUID2LIDName))+" - >"+siteLIDs+".new",
		"mv "+siteLIDs+".new "+siteLIDs)
	with := func(config string) []string {
		if !slices.Contains(files, config) {
			return nil
		}
		return append(slices.Clone(commands),
			"cat "+quote(filepath.Join(opt.InstallDir, config))+" >>"+siteConfig, start)
	}
	return with(PluginOpenSMName), with(ConfigName), undo
}

// adaptiveSwitch is the JSON form of a switch's choices. LIDs in no group have only their
// static port.
type adaptiveSwitch struct {
	verify.SwitchRef
	Groups []adaptiveGroup `json:"groups"`
}

type adaptiveGroup struct {
	Group int             `json:"group"`
	Ports []int           `json:"ports"`
	LIDs  [][2]fabric.LID `json:"lids"` // first and last LID of each range
}

// writeAdaptive writes the groups of each switch and the LIDs that use them as JSON, a line
// for each switch. t must have one PLFT, as adaptive.Widen makes it.
func writeAdaptive(w io.Writer, f *fabric.Fabric, t *adaptive.Tables, only []fabric.NodeID) error {
	b := bufio.NewWriter(w)
	b.WriteString(`{"switches": [`)
	separator := "\n"
	for _, s := range f.Switches() {
		if only != nil && !slices.Contains(only, s) {
			continue
		}
		x := adaptiveSwitch{SwitchRef: verify.SwitchOf(f, s), Groups: make([]adaptiveGroup, len(t.Groups[s]))}
		for i := range x.Groups {
			g := &x.Groups[i]
			g.Group = t.Groups[s][i].Number
			set := t.Groups[s][i].Ports()
			set.Each(func(p fabric.PortNum) { g.Ports = append(g.Ports, int(p)) })
		}
		for l := range t.PLFTs[0].Row(s) {
			lid := fabric.LID(l)
			_, i := t.PLFTs[0].At(s, lid)
			if i < 0 {
				continue
			}
			g := &x.Groups[i]
			if last := len(g.LIDs) - 1; last >= 0 && g.LIDs[last][1] == lid-1 {
				g.LIDs[last][1] = lid
			} else {
				g.LIDs = append(g.LIDs, [2]fabric.LID{lid, lid})
			}
		}
		text, err := json.Marshal(x)
		if err != nil {
			return err
		}
		b.WriteString(separator)
		b.Write(text)
		separator = ",\n"
	}
	b.WriteString("\n]}\n")
	return b.Flush()
}
