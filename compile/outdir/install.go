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

// InstallCommands are the shell commands that copy a compiled directory with these files
// to where its configurations expect it, and add lines to the site's opensm.conf, which
// keeps its other options: those of the plugin, and those of the static files. Either is
// nil where the directory lacks that configuration.
func InstallCommands(dir string, files []string, opt Options) (plugin, static []string) {
	quote := func(s string) string {
		if s != "" && !strings.ContainsFunc(s, func(c rune) bool {
			return !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("_-./+,:@%", c))
		}) {
			return s
		}
		return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
	}
	commands := []string{"systemctl stop opensm"} // which reads guid2lid when it starts
	if abs, err := filepath.Abs(dir); err != nil || abs != filepath.Clean(opt.InstallDir) {
		commands = append(commands,
			"mkdir -p "+quote(opt.InstallDir),
			"cp "+quote(dir)+"/* "+quote(opt.InstallDir)+"/")
	}
	if opt.Zstd {
		commands = append(commands, "zstd -d -q -f --rm "+quote(opt.InstallDir)+"/*"+ZstdSuffix)
	}
	commands = append(commands, "cp "+quote(filepath.Join(opt.InstallDir, GUID2LIDName))+" /var/cache/opensm/guid2lid")
	with := func(config string) []string {
		if !slices.Contains(files, config) {
			return nil
		}
		return append(slices.Clone(commands),
			"cat "+quote(filepath.Join(opt.InstallDir, config))+" >>/etc/opensm/opensm.conf",
			"systemctl start opensm")
	}
	return with(PluginOpenSMName), with(ConfigName)
}

// adaptiveSwitch is the choices of a switch in the JSON form. LIDs without a group have their
// static port alone.
type adaptiveSwitch struct {
	verify.SwitchRef
	Groups []adaptiveGroup `json:"groups"`
}

type adaptiveGroup struct {
	Group int             `json:"group"`
	Ports []int           `json:"ports"`
	LIDs  [][2]fabric.LID `json:"lids"` // from the first to the last of each range
}

// writeAdaptive writes the groups of each switch and the LIDs that use them, as JSON with a line
// for each switch. It takes tables as adaptive.Widen makes them.
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
