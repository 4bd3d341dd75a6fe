package cli

import "runtime/debug"

// Revision is " (0123456789ab)" with the commit that was built, and
// "modified" if the tree was.
func Revision() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	commit, modified := "", ""
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			commit = s.Value[:min(12, len(s.Value))]
		case "vcs.modified":
			if s.Value == "true" {
				modified = ", modified"
			}
		}
	}
	if commit == "" {
		return ""
	}
	return " (" + commit + modified + ")"
}
