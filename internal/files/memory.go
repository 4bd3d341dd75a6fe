package files

import (
	"fmt"
	"math"
	"os"
	"path"
	"strconv"
	"strings"
)

// Available returns how many bytes of memory this process may still
// take: the least of what the machine has (MemAvailable and free
// swap), what its control groups leave (version 1 and 2), and its
// limit of address space. A limit that cannot be read counts as none.
func Available() int64 {
	least := int64(math.MaxInt64)
	if m, ok := field("/proc/meminfo", "MemAvailable:"); ok {
		swap, _ := field("/proc/meminfo", "SwapFree:")
		least = (m + swap) << 10
	}
	if limit, ok := field("/proc/self/limits", "Max address space"); ok { // else it is unlimited
		if used, ok := field("/proc/self/status", "VmSize:"); ok {
			least = min(least, limit-used<<10)
		}
	}
	groups, _ := os.ReadFile("/proc/self/cgroup")
	for line := range strings.Lines(string(groups)) {
		_, line, _ = strings.Cut(strings.TrimSpace(line), ":")
		controllers, group, _ := strings.Cut(line, ":")
		switch controllers {
		case "":
			least = min(least, groupLeaves("/sys/fs/cgroup", group, "memory.max", "memory.current", "inactive_file"))
		case "memory":
			least = min(least, groupLeaves("/sys/fs/cgroup/memory", group, "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"))
		}
	}
	return max(least, 0)
}

// groupLeaves returns what a control group and those around it leave. A container
// may see its own group as the root: groups that do not exist are passed over.
func groupLeaves(root, group, limit, usage, cache string) int64 {
	least := int64(math.MaxInt64)
	for group = path.Clean("/" + group); ; group = path.Dir(group) {
		dir := path.Join(root, group)
		most, ok := number(path.Join(dir, limit))
		used, known := number(path.Join(dir, usage))
		if ok && known {
			clean, _ := field(path.Join(dir, "memory.stat"), cache) // given back under pressure
			least = min(least, most-max(used-clean, 0))
		}
		if group == "/" {
			return least
		}
	}
}

// Resident returns how many bytes of memory this process has, 0 if that is
// not known. Pages of mapped files do not count: the system takes them back.
func Resident() int64 {
	data, _ := os.ReadFile("/proc/self/statm")
	return residentPages(string(data)) * int64(os.Getpagesize())
}

// residentPages reads statm of proc(5) (size, resident pages, file pages) and returns resident less file pages.
func residentPages(statm string) int64 {
	var size, all, ofFiles int64
	_, _ = fmt.Sscan(statm, &size, &all, &ofFiles) // a number that is missing is 0
	return all - ofFiles
}

// number reads a file of one number.
func number(name string) (int64, bool) {
	data, err := os.ReadFile(name)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64)
	return n, err == nil
}

// field reads the number after the words that a line begins with.
func field(name, words string) (int64, bool) {
	data, _ := os.ReadFile(name)
	for line := range strings.Lines(string(data)) {
		rest, found := strings.CutPrefix(line, words)
		if values := strings.Fields(rest); found && len(values) > 0 && !strings.HasPrefix(rest, values[0]) {
			n, err := strconv.ParseInt(values[0], 10, 64)
			return n, err == nil
		}
	}
	return 0, false
}
