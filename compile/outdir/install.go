package outdir

import (
	"path/filepath"
	"slices"
	"strings"
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
