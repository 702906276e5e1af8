/* SPDX-License-Identifier: GPL-2.0-only */
#include "daemon/config.h"
#include "base/cleanup.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#define A_10 "aaaaaaaaaa"
#define A_90 A_10 A_10 A_10 A_10 A_10 A_10 A_10 A_10 A_10

struct bad_case {
	const char *text;
	const char *message; /* after "FILE:" */
};

#define SECTIONS "; there are [defaults], [all] and [group ADDR:PORT]"
#define NO_GROUP                                                                                   \
	" is not a group; a group is ADDR:PORT, [V6]:PORT, :PORT or PORT, such as [group "         \
	"127.0.0.1:8080]"
#define SETTINGS "policy, slow-start, busy-penalty, stuck-after, rescue"
#define NETNS_IS "; it takes an inode number, or a path such as /run/netns/NAME or /proc/PID/ns/net"

static const struct bad_case bad_cases[] = {
	{ "[default]\n", "1: there is no section [default]" SECTIONS },
	{ "[]\n", "1: there is no section []" SECTIONS },
	{ "[\n", "1: \"[\" does not end with a bracket" SECTIONS },
	{ "[all\n", "1: \"[all\" does not end with a bracket" SECTIONS },
	{ "[all] policy = p2c\n",
	  "1: \"[all] policy = p2c\" does not end with a bracket" SECTIONS },
	{ "[\x1b[2J]\n", "1: there is no section [\\x1b[2J]" SECTIONS },
	{ "policy = p2c\n", "1: \"policy\" stands before the first section" SECTIONS },
	{ "[defaults]\n\n# why\nslow_start = 1s\n",
	  "4: [defaults] has no key \"slow_start\"; it has " SETTINGS },
	{ "[defaults]\nnetns = 7\n", "2: [defaults] has no key \"netns\"; it has " SETTINGS },
	{ "[group :80]\ncommand = nginx\n",
	  "2: [group] has no key \"command\"; it has netns, " SETTINGS },
	{ "[all]\nnetns = 7\n",
	  "2: [all] has no key \"netns\"; it has address, command, user, " SETTINGS },
	{ "[all]\n= 7\n", "2: [all] has no key \"\"; it has address, command, user, " SETTINGS },
	{ "[defaults]\nslow-start = 5\n",
	  "2: \"5\" is no value for slow-start (DURATION): a listener that joins reaches its full "
	  "share after this: 0 to 10m" },
	{ "[group :80]\npolicy = fast\n",
	  "2: \"fast\" is no value for policy (NAME): how a listener is chosen" },
	{ "[all]\npolicy =\n", "2: \"\" is no value for policy (NAME): how a listener is chosen" },
	{ "[all]\naddress =\n", "2: address takes a pattern of 1 to 127 characters" },
	{ "[all]\nuser = nobody-has-this-name\n",
	  "2: there is no user \"nobody-has-this-name\"; user takes a name or a number" },
	{ "[defaults]\npolicy = p2c\npolicy = hash\n",
	  "3: policy was given in this section already" },
	{ "[group :80]\nnetns = 7\nnetns = 7\n", "3: netns was given in this section already" },
	{ "[all]\nuser = 0\nuser = 1\n", "3: user was given in this section already" },
	{ "[defaults]\n[all]\n[defaults]\n",
	  "3: there is a section [defaults] already, in line 1" },
	{ "[all]\n[defaults]\n[all]\n", "3: there is a section [all] already, in line 1" },
	{ "[group]\n", "1: \"\"" NO_GROUP },
	{ "[group localhost:80]\n", "1: \"localhost:80\"" NO_GROUP },
	{ "[group :80 ]\n", "1: \":80 \"" NO_GROUP },
	{ "[group 127.0.0.1:80]\n[group :81]\n[group   127.0.0.1:80]\npolicy = hash\n",
	  "3: this group has a section already, in line 1: put everything into one, or tell them "
	  "apart by netns" },
	{ "[group :80]\nnetns = 7\n[group 80]\nnetns = 7\n[group :80]\n",
	  "3: this group has a section already, in line 1: put everything into one, or tell them "
	  "apart by netns" },
	{ "[group :80]\nnetns = 0\n", "2: netns 0: an inode number is 1 to 4294967295" },
	{ "[group :80]\nnetns = /no/such/file\n",
	  "2: netns \"/no/such/file\": No such file or directory" NETNS_IS },
	{ "[group :80]\nnetns = /dev/null\n",
	  "2: netns \"/dev/null\" is not a network namespace" NETNS_IS },
	{ "[defaults]\npolicy\n",
	  "2: this is neither KEY = VALUE nor a [section] nor a # comment" },
	{ "[defaults]\nnonsense\npolicy = nonsense\n",
	  "2: this is neither KEY = VALUE nor a [section] nor a # comment" },
	{ "[defaults]\nnonsense\n[nonsense]\n",
	  "2: this is neither KEY = VALUE nor a [section] nor a # comment" },
	{ "[all]\ncommand = " A_90 A_90 "\n", "2: command takes a pattern of 1 to 127 characters" },
	{ "[all]\n# " A_90 A_90 A_10 "\n", "2: this line is too long; it may have 190 characters" },
};

static void expect_refusal(const char *text, size_t size, const char *message)
{
	struct config config, untouched;
	struct failure failure = {};
	char expected[1024];
	int err;

	memset(&untouched, 0x5a, sizeof(untouched));
	memcpy(&config, &untouched, sizeof(config));
	snprintf(expected, sizeof(expected), "FILE:%s", message);
	err = config_parse("FILE", text, size, &config, &failure);
	cr_expect_eq(err, -EINVAL, "\"%s\" gives %d", text, err);
	cr_expect_eq(failure.code, EXIT_USAGE, "\"%s\"", text);
	cr_expect_str_eq(failure.message, expected);
	cr_expect_arr_eq(&config, &untouched, sizeof(config), "\"%s\"", text);
}

Test(config, a_bad_file_is_refused_with_its_line_and_what_would_be_right)
{
	for (size_t i = 0; i < COUNT(bad_cases); i++)
		expect_refusal(bad_cases[i].text, strlen(bad_cases[i].text), bad_cases[i].message);
}

Test(config, a_zero_byte_is_no_text)
{
	static const char text[] = "[defaults]\npolicy = p2c\0hash\n";

	expect_refusal(text, sizeof(text) - 1, "2: this line has a zero byte, which no text has");
}

Test(config, more_groups_than_allowed_are_refused_where_they_begin)
{
	char *text CLEANUP(cleanup_free) = NULL;
	struct failure failure = {};
	struct config config;
	size_t size, i;
	FILE *out = open_memstream(&text, &size);

	cr_assert_not_null(out);
	for (i = 1; i <= MAX_CONFIG_GROUPS; i++)
		fprintf(out, "[group :%zu]\n", i);
	fflush(out);
	cr_assert_eq(config_parse("FILE", text, size, &config, &failure), 0, "%s", failure.message);
	cr_expect_eq(config.nr_groups, MAX_CONFIG_GROUPS);
	config_done(&config);
	fprintf(out, "[group :%zu]\n", i);
	fclose(out);
	expect_refusal(text, size, "257: more than 256 groups; [all] takes many at once");
}

static void parse_well(const char *text, struct config *ret_config)
{
	struct failure failure = {};
	int err = config_parse("FILE", text, strlen(text), ret_config, &failure);

	cr_assert_eq(err, 0, "%s: %s", text, failure.message);
}

/* The value that was chosen, "" for none. */
static const char *chosen(const struct choice *choice, const char *name)
{
	return choice->values[setting_find(name) - settings_keys];
}

Test(config, a_good_file_is_read_as_it_was_meant)
{
	struct config config;
	const uint8_t loopback[16] = { 127, 0, 0, 1 };

	parse_well("\xef\xbb\xbf# begins with a mark\r\n"
		   "[defaults]   ; for all\r\n"
		   "slow-start=2s\r\n"
		   "\t busy-penalty :  1.5 ; colons will do\n"
		   "[group 127.0.0.1:80]\n"
		   "policy = p2c\n"
		   "  slow-start = 0\n"
		   "\n"
		   "  [group [::1]:80]  # brackets\n"
		   "netns = 4026531840\n"
		   "[all]\n"
		   "address = [::1]:*\n"
		   "user = 33\n"
		   "policy = round-robin",
		   &config);
	cr_expect_str_eq(chosen(&config.defaults, "slow-start"), "2s");
	cr_expect_str_eq(chosen(&config.defaults, "busy-penalty"), "1.50");
	cr_expect_str_empty(chosen(&config.defaults, "policy"));
	cr_assert_eq(config.nr_groups, 2);
	cr_expect_eq(config.groups[0].spec.port, 80);
	cr_expect_arr_eq(config.groups[0].spec.address, loopback, 16);
	cr_expect_eq(config.groups[0].spec.netns, 0);
	cr_expect_str_eq(config.groups[0].spec.text, "127.0.0.1:80");
	cr_expect_str_eq(chosen(&config.groups[0].choice, "policy"), "p2c");
	cr_expect_str_eq(chosen(&config.groups[0].choice, "slow-start"), "0");
	cr_expect_eq(config.groups[1].spec.family, AF_INET6);
	cr_expect_eq(config.groups[1].spec.netns, 4026531840);
	cr_expect_eq(config.groups[1].line, 9);
	cr_expect_str_empty(chosen(&config.groups[1].choice, "policy"));
	cr_expect(config.all);
	cr_expect_eq(config.patterns.nr, 2);
	cr_expect_str_eq(chosen(&config.all_choice, "policy"), "round-robin");
	config_done(&config);
}

Test(config, the_same_group_in_two_namespaces_is_two_groups)
{
	struct config config;

	parse_well("[group :80]\nnetns = 7\n[group :80]\nnetns = 8\n[group :80]\n", &config);
	cr_expect_eq(config.nr_groups, 3);
	config_done(&config);
}

Test(config, an_empty_file_asks_for_nothing)
{
	struct config config;

	parse_well("", &config);
	cr_expect_eq(config.nr_groups, 0);
	cr_expect_not(config.all);
	parse_well("\n \n#\n;\n[defaults]\n", &config);
	cr_expect_eq(config.nr_groups, 0);
}

static void expect_unreadable(const char *path, int err, const char *message)
{
	struct failure failure = {};
	struct config config;

	cr_expect_eq(config_read(path, &config, &failure), err);
	cr_expect_eq(failure.code, EXIT_USAGE);
	cr_expect_str_eq(failure.message, message);
}

Test(config, what_is_no_readable_file_is_refused)
{
	int fd CLEANUP(cleanup_fd) = memfd_create("large", MFD_CLOEXEC);
	char path[64], message[256];

	expect_unreadable("/no/such/file", -ENOENT,
			  "cannot read the configuration /no/such/file: No such file or directory");
	expect_unreadable("/", -EISDIR, "cannot read the configuration /: Is a directory");
	expect_unreadable(
		"/dev/zero", -ENODEV,
		"cannot read /dev/zero: not a regular file, and it is read again on SIGHUP");
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	cr_assert_eq(ftruncate(fd, MAX_CONFIG_BYTES + 1), 0);
	snprintf(message, sizeof(message),
		 "%s is larger than 1048576 bytes, so it is no configuration", path);
	expect_unreadable(path, -EFBIG, message);
}

/* xorshift64: the same bytes in every run. */
static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* From the words of the language rather than from all bytes, so that it gets somewhere. */
static size_t write_nonsense(uint64_t *state, char *text, size_t size)
{
	static const char *const words[] = {
		"[",   "]",	     "[defaults]",   "[all]",	"[group ", ":80", "127.0.0.1",
		"\n",  "\n",	     "\n",	     " ",	"=",	   ":",	  "policy",
		"p2c", "slow-start", "5s",	     "netns",	"7",	   "#",	  ";",
		"1.5", "address",    "busy-penalty", "command", "*",	   "\\",  "user",
		"0",   A_90,	     "\xef\xbb\xbf", "\r",	"[::1]",
	};
	size_t used = 0, length;

	while (used + sizeof(A_90) < size) {
		const char *word = words[next_random(state) % COUNT(words)];

		length = strlen(word);
		memcpy(text + used, word, length);
		used += length;
		if (next_random(state) % 8 == 0)
			text[used++] = (char)next_random(state);
		if (next_random(state) % 64 == 0)
			break;
	}
	return used;
}

Test(config, random_text_never_crashes_it)
{
	uint64_t state = 88172645463325252;
	size_t i, nr_good = 0;

	for (i = 0; i < 20000; i++) {
		struct failure failure = {};
		struct config config;
		char text[2048];
		size_t size = write_nonsense(&state, text, sizeof(text));

		if (config_parse("FILE", text, size, &config, &failure)) {
			cr_assert_eq(failure.code, EXIT_USAGE);
			continue;
		}
		config_done(&config);
		nr_good++;
	}
	cr_expect_gt(nr_good, 10, "hardly anything but refusals");
}

/* The sample, from the folder of the sources or from build/tests. */
static void read_sample(char **ret_text, size_t *ret_size, struct config *ret_config)
{
	static const char path[] = "scripts/socksteer.conf";
	struct failure failure = {};
	FILE *file CLEANUP(cleanup_file) = fopen(path, "re");

	cr_assert_not_null(file, "%s", path);
	*ret_text = calloc(1, 65536);
	*ret_size = fread(*ret_text, 1, 65535, file);
	cr_assert_eq(config_read(path, ret_config, &failure), 0, "%s", failure.message);
}

/* Removes the # of each line that is a key or a section, and not a sentence. */
static void uncomment(char *text)
{
	char *line, *end;

	for (line = text; *line; line = end) {
		end = strchrnul(line, '\n');
		end += *end == '\n';
		if (line[0] == '#' && line[1] != ' ' && line[1] != '\n')
			memmove(line, line + 1, strlen(line)), end--;
	}
}

Test(config, the_sample_is_all_right_says_nothing_and_has_every_key)
{
	static const struct choice undecided;
	char *text CLEANUP(cleanup_free) = NULL, *netns, line[64];
	const struct setting *setting;
	struct config config;
	size_t size, i;

	read_sample(&text, &size, &config);
	cr_expect_eq(config.nr_groups, 0);
	cr_expect_not(config.all);
	cr_expect_arr_eq(&config.defaults, &undecided, sizeof(undecided));
	for (setting = settings_keys; setting->name; setting++) {
		snprintf(line, sizeof(line), "\n#%s = ", setting->name);
		cr_expect_not_null(strstr(text, line), "%s is not in the sample", setting->name);
	}
	for (i = 0; i < NR_PATTERN_KEYS; i++) {
		snprintf(line, sizeof(line), "\n#%s = ", pattern_key_name((enum pattern_key)i));
		cr_expect_not_null(strstr(text, line), "%s", line);
	}
	/* What it would say is right too. This namespace is not there. */
	netns = strstr(text, "/run/netns/blue");
	cr_assert_not_null(netns);
	uncomment(text);
	memcpy(strstr(text, "= /run/netns/blue"), "= 4026531840 ;   ", 17);
	parse_well(text, &config);
	cr_expect_eq(config.nr_groups, 1);
	cr_expect_eq(config.patterns.nr, NR_PATTERN_KEYS);
	config_done(&config);
}
