/*-------------------------------------------------------------------------
 *
 * messages.c
 *	  Random messages of several clients, to connections in this process.
 *
 * A client keeps track of its state approximately, so that most of its
 * messages are legal and jobs complete.  The others are not: messages out of
 * order, wrong fields, wrong lengths, random bytes, descriptors, and buffers
 * whose contents change at any time.
 *
 * The answers are checked as far as possible for any behavior of clients:
 * messages are complete, and only buffers that were given to gpusortd are
 * returned.
 *
 *-------------------------------------------------------------------------
 */
#include "messages.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "gpusortd/connection.h"
#include "common/basics.h"
#include "doubles/daemon/device_host.h"
#include "unit_check.h"

#define NCLIENTS		4
#define BUFFER_BYTES		GS_MIN_BUFFER_BYTES
#define DEVICE_BYTES	((uint64_t) 16 << 20)
#define LIMIT_BYTES		((uint64_t) 4 << 20)

/* A few jobs fit, others do not. */
#define DISK_BYTES		((uint64_t) 1 << 20)

typedef enum Stage
{
	STAGE_NEW,
	STAGE_IDLE,
	STAGE_OPENING,
	STAGE_JOINING,
	STAGE_FEEDING,
	STAGE_FEED_FULL,
	STAGE_ENDING,
	STAGE_READING,
	STAGE_LOADING,
	STAGE_SORTING,
	STAGE_SORTED,
	STAGE_FULL,
	STAGE_DRAINING,
	STAGE_FAILED
} Stage;

typedef struct RandomClient
{
	int			socket;			/* -1: none */
	GsConnection *connection;	/* NULL: none */
	Stage		stage;
	bool		has_job;		/* the job that it opened or joined last has begun, and is not closed */
	char	   *buffer_pool;
	int			memfd;
	uint32_t	nbuffers;
	unsigned	given[GS_MAX_BUFFERS]; /* how often each buffer was given to gpusortd and not returned */
	GsKeyLayout layout;
	uint64_t	nrows;			/* sent, those of producers too; of a reader: to be read */
	uint64_t	token;			/* of its job if shared; otherwise 0 */
	uint64_t	joined;			/* of the job that it joined; otherwise 0 */
	bool		reads;			/* as a reader */
} RandomClient;

typedef struct World
{
	Dice	   *dice;
	GsService	service;
	GsDeviceSlot slot;
	RandomClient clients[NCLIENTS];
	MessagesReached *reached;
} World;

/* ------------------------------------------------------------------ clients */

static void
client_arrive(World *world, RandomClient *client)
{
	int			ends[2];

	CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0);
	memset(client, 0, sizeof(*client));
	client->memfd = -1;
	client->socket = ends[0];
	client->connection = gs_connection_open(&world->service, ends[1]);
	CHECK(client->connection != NULL);
}

static void
client_leave(RandomClient *client)
{
	if (client->socket >= 0)
		close(client->socket);
	if (client->memfd >= 0)
		close(client->memfd);
	if (client->buffer_pool != NULL)
		munmap(client->buffer_pool, (size_t) BUFFER_BYTES * client->nbuffers);
	client->socket = -1;
	client->memfd = -1;
	client->buffer_pool = NULL;
	client->token = 0;
	client->joined = 0;
}

/* Sends bytes with ndescriptors descriptors.  Ignores errors. */
static void
client_send(RandomClient *client, void *bytes, size_t nbytes, int descriptor, int ndescriptors)
{
	int			descriptors[4] = {descriptor, descriptor, descriptor, descriptor};
	union
	{
		struct cmsghdr align;
		char		room[CMSG_SPACE(sizeof(descriptors))];
	}			control = {0};
	struct iovec piece = {.iov_base = bytes,.iov_len = nbytes};
	struct msghdr header = {.msg_iov = &piece,.msg_iovlen = 1};

	if (client->socket < 0)
		return;
	if (descriptor >= 0 && ndescriptors > 0)
	{
		size_t		fds_bytes = sizeof(int) * (size_t) ndescriptors;
		struct cmsghdr *first;

		header.msg_control = &control;
		header.msg_controllen = CMSG_SPACE(fds_bytes);
		first = CMSG_FIRSTHDR(&header);
		first->cmsg_level = SOL_SOCKET;
		first->cmsg_type = SCM_RIGHTS;
		first->cmsg_len = CMSG_LEN(fds_bytes);
		memcpy(CMSG_DATA(first), descriptors, fds_bytes);
	}
	(void) !sendmsg(client->socket, &header, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void
send_message(RandomClient *client, void *message, GsMessageType type, size_t nbytes)
{
	*(GsMessage *) message = (GsMessage)
	{
		.type = type,.nbytes = (uint32_t) nbytes
	};
	client_send(client, message, nbytes, -1, 0);
}

static void
take_buffer(RandomClient *client, uint32_t buffer)
{
	CHECK(buffer < client->nbuffers);
	CHECK_MSG(client->given[buffer] > 0, "buffer %u comes back, and was not given away", buffer);
	client->given[buffer]--;
}

/* The consumer of the job that it joined; NULL if that has ended. */
static RandomClient *
consumer_of(World *world, const RandomClient *client)
{
	for (int i = 0; i < NCLIENTS; i++)
		if (client->joined != 0 && world->clients[i].token == client->joined)
			return &world->clients[i];
	return NULL;
}

static bool
has_producers(const World *world, const RandomClient *client)
{
	for (int i = 0; i < NCLIENTS; i++)
		if (client->token != 0 && world->clients[i].joined == client->token && !world->clients[i].reads)
			return true;
	return false;
}

/* Its rows belong to the consumer from now on. */
static void
end_as_producer(World *world, RandomClient *client)
{
	RandomClient *consumer = consumer_of(world, client);

	if (consumer != NULL)
		gs_key_layout_merge(&consumer->layout, &client->layout);
	client->joined = 0;
	client->has_job = false;
	client->stage = STAGE_IDLE;
}

/* Reads all messages and updates the state of the client. */
static void
client_read(World *world, RandomClient *client)
{
	MessagesReached *reached = world->reached;
	GsAnyMessage message;
	ssize_t		nbytes;

	if (client->socket < 0)
		return;
	while ((nbytes = recv(client->socket, &message, sizeof(message), MSG_DONTWAIT)) > 0)
	{
		/* a message of the previous job, sent before gpusortd read that it is closed? */
		bool		closed = !client->has_job;

		CHECK((size_t) nbytes >= sizeof(GsMessage) && message.message.nbytes == (size_t) nbytes);
		switch (message.message.type)
		{
			case GS_MESSAGE_WELCOME:
				CHECK(message.welcome.memory_used <= message.welcome.memory_limit);
				if (client->buffer_pool != NULL)
					client->stage = STAGE_IDLE;
				break;
			case GS_MESSAGE_JOB_READY:
				if (client->stage == STAGE_JOINING)
				{
					client->stage = client->reads ? STAGE_READING : STAGE_FEEDING;
					reached->joined++;
				}
				else
				{
					client->stage = STAGE_LOADING;
					reached->jobs++;
				}
				client->token = message.job_ready.token;
				client->has_job = true;
				break;
			case GS_MESSAGE_PRODUCER_DONE:
				reached->producer_done++;
				if (closed)
					break;
				CHECK(message.producer_done.nrows <= client->nrows);
				end_as_producer(world, client);
				break;
			case GS_MESSAGE_BATCH_FREE:
				if (!closed)
					take_buffer(client, message.buffer.buffer);
				break;
			case GS_MESSAGE_SORTED:
				reached->sorted++;
				if (closed)
					break;
				CHECK(message.sorted.nrows <= client->nrows);
				client->stage = STAGE_SORTED;
				break;
			case GS_MESSAGE_BATCH_READY:
				if (message.ready.nrows == 0)
					break;
				reached->batches++;
				if (closed)
					break;
				reached->batches_read += client->stage == STAGE_READING;
				take_buffer(client, message.ready.buffer);
				CHECK(message.ready.rows_bytes <= BUFFER_BYTES);
				CHECK(message.ready.position + message.ready.nrows <= client->nrows);
				break;
			case GS_MESSAGE_FAILED:
				CHECK(memchr(message.failed.text, 0, sizeof(message.failed.text)) != NULL);
				CHECK_MSG(message.failed.failure != GS_FAILED_DEVICE, "%s", message.failed.text);
				client->stage = message.failed.failure != GS_FAILED_MEMORY ? STAGE_FAILED :
					client->stage == STAGE_LOADING || client->stage == STAGE_SORTING ? STAGE_FULL :
					client->stage == STAGE_FEEDING ? STAGE_FEED_FULL : STAGE_FAILED;
				if (message.failed.failure == GS_FAILED_MEMORY)
					reached->memory_failures++;
				else
					reached->other_failures++;
				break;
			default:
				CHECK_MSG(false, "message %u came", message.message.type);
		}
	}
	if (nbytes == 0)
	{
		reached->dropped++;
		client_leave(client);
	}
}

/* ----------------------------------------------------------- what they say */

static void
say_hello(World *world, RandomClient *client, bool sane)
{
	Dice	   *dice = world->dice;
	GsHello		hello = {.magic = GS_WIRE_MAGIC,.version = GS_WIRE_VERSION};
	int			ndescriptors = 1;
	int			other = -1;

	memcpy(hello.build, gs_build_id, sizeof(hello.build));
	if (client->buffer_pool == NULL)
	{
		client->nbuffers = 1 + (uint32_t) dice_below(dice, 4);
		client->memfd = memfd_create("buffers", MFD_CLOEXEC | MFD_ALLOW_SEALING);
		CHECK(client->memfd >= 0 && ftruncate(client->memfd, BUFFER_BYTES * client->nbuffers) == 0);
		if (sane || dice_one_in(dice, 2))
			CHECK(fcntl(client->memfd, F_ADD_SEALS, F_SEAL_SHRINK) == 0);
		client->buffer_pool = mmap(NULL, (size_t) BUFFER_BYTES * client->nbuffers, PROT_READ | PROT_WRITE,
								   MAP_SHARED, client->memfd, 0);
		CHECK(client->buffer_pool != MAP_FAILED);
	}
	hello.buffer_bytes = BUFFER_BYTES;
	hello.nbuffers = client->nbuffers;
	hello.buffer_pool_bytes = (uint64_t) BUFFER_BYTES * client->nbuffers;
	hello.message = (GsMessage)
	{
		.type = GS_MESSAGE_HELLO,.nbytes = sizeof(hello)
	};
	if (!sane)
	{
		switch (dice_below(dice, 9))
		{
			case 8:
				hello.build[dice_below(dice, GS_BUILD_ID_BYTES)] = (char) dice_word(dice);
				break;
			case 0:
				hello.magic = (uint32_t) dice_word(dice);
				break;
			case 1:
				hello.version = (uint32_t) dice_word(dice);
				break;
			case 2:
				hello.buffer_pool_bytes = dice_any_width(dice, 64);
				break;
			case 3:
				hello.buffer_bytes = (uint32_t) dice_any_width(dice, 32);
				hello.buffer_pool_bytes = (uint64_t) hello.buffer_bytes * hello.nbuffers;
				break;
			case 4:
				hello.nbuffers = (uint32_t) dice_any_width(dice, 32);
				hello.buffer_pool_bytes = (uint64_t) hello.buffer_bytes * hello.nbuffers;
				break;
			case 5:
				hello.buffer_pool_bytes = 0;
				hello.buffer_bytes = 0;
				hello.nbuffers = 0;
				ndescriptors = 0;
				break;
			case 6:
				ndescriptors = (int) dice_below(dice, 5);
				break;
			default:
				other = client->socket;
		}
	}
	client_send(client, &hello, sizeof(hello), other >= 0 ? other : client->memfd, ndescriptors);
}

static void
say_open(World *world, RandomClient *client, bool sane)
{
	Dice	   *dice = world->dice;
	GsJobOpen	open = {.nwords = 1,.keys_only = (uint32_t) dice_below(dice, 2)};

	gs_key_layout_init(&client->layout);
	gs_key_layout_add_column(&client->layout, dice_one_in(dice, 2), false);
	if (!open.keys_only && dice_one_in(dice, 3))
		gs_key_layout_add_bytes(&client->layout, dice_one_in(dice, 2));
	else
		gs_key_layout_add_field(&client->layout, 64, GS_CANONICAL_NONE);
	client->layout.keys_only = open.keys_only;
	client->nrows = 0;
	client->token = 0;
	client->joined = 0;
	open.shared = (uint32_t) dice_below(dice, 4) > 0;
	open.participant = (uint32_t) dice_below(dice, 3);
	memset(client->given, 0, sizeof(client->given));
	open.nwords = (uint32_t) client->layout.nwords;
	open.expected_bytes = dice_any_width(dice, sane ? 22 : 64);
	if (dice_one_in(dice, 2))
		open.wait_ms = (uint32_t) dice_any_width(dice, sane ? 4 : 32);
	if (!sane)
	{
		open.nwords = (uint32_t) dice_any_width(dice, 32);
		open.keys_only = (uint32_t) dice_below(dice, 3);
		open.shared = (uint32_t) dice_below(dice, 3);
		open.participant = (uint32_t) dice_any_width(dice, 11);
	}
	client->has_job = false;
	client->stage = STAGE_OPENING;
	send_message(client, &open, GS_MESSAGE_JOB_OPEN, sizeof(open));
}

/* Joins a job that can be joined, or reads it; false if there is none. */
static bool
say_join(World *world, RandomClient *client, bool sane)
{
	Dice	   *dice = world->dice;
	const RandomClient *consumer = &world->clients[dice_below(dice, NCLIENTS)];
	GsJobJoin	join = {.token = consumer->token};

	if (sane && (join.token == 0 || consumer == client))
		return false;
	client->layout = consumer->layout;
	client->layout.nrows = 0;
	client->nrows = 0;
	client->token = 0;
	client->joined = join.token;
	client->reads = dice_one_in(dice, 2);
	memset(client->given, 0, sizeof(client->given));
	join.nwords = (uint32_t) client->layout.nwords;
	join.keys_only = client->layout.keys_only;
	join.participant = (uint32_t) dice_below(dice, 3);
	if (!sane)
	{
		switch (dice_below(dice, 4))
		{
			case 0:
				join.token = dice_word(dice);
				break;
			case 1:
				join.nwords = (uint32_t) dice_any_width(dice, 32);
				break;
			case 2:
				join.keys_only = (uint32_t) dice_below(dice, 3);
				break;
			default:
				join.participant = (uint32_t) dice_any_width(dice, 32);
		}
	}
	client->has_job = false;
	client->stage = STAGE_JOINING;
	send_message(client, &join, client->reads ? GS_MESSAGE_JOB_READ : GS_MESSAGE_JOB_JOIN, sizeof(join));
	return true;
}

static void
send_producer_end(World *world, RandomClient *client, bool sane)
{
	GsProducerEnd end = {.partial = client->stage == STAGE_FEED_FULL};

	if (!sane)
		end.partial = (uint32_t) dice_below(world->dice, 3);
	client->stage = STAGE_ENDING;
	send_message(client, &end, GS_MESSAGE_PRODUCER_END, sizeof(end));
}

/* Rows of 16 to 64 random bytes. */
static void
fill_buffer(World *world, RandomClient *client, uint32_t buffer, GsBatchFilled *filled)
{
	Dice	   *dice = world->dice;
	uint64_t	nrows = 1 + dice_below(dice, dice_one_in(dice, 4) ? 2000 : 20);
	bool		spoilt = dice_one_in(dice, 6);
	GsBatch		batch;

	gs_batch_init(&batch, client->buffer_pool + (size_t) buffer * BUFFER_BYTES, BUFFER_BYTES,
				  gs_record_bytes(&client->layout));
	for (uint64_t i = 0; i < nrows; i++)
	{
		size_t		row_bytes = client->layout.keys_only ? 0 : 16 + 8 * dice_below(dice, 7);
		uint64_t   *record = gs_batch_next_record(&batch);
		uint64_t	code = dice_any_width(dice, 64);

		if (!gs_batch_has_space(&batch, row_bytes))
			break;
		memset(gs_batch_next_row(&batch), (int) dice_below(dice, 256), row_bytes);
		record[0] = code;
		if (client->layout.columns[0].variable)
			record[1] = spoilt ? dice_word(dice) :
				gs_tail_make(0, 8 + (uint32_t) dice_below(dice, row_bytes - 7));
		if (!client->layout.keys_only)
			record[client->layout.nwords] = spoilt ? dice_word(dice) :
				gs_batch_next_location(&batch, 0);
		gs_batch_push(&batch, row_bytes);
		gs_key_field_update_range(&client->layout.fields[0], code);
	}
	if (client->layout.columns[0].variable)
	{
		client->layout.columns[0].min_len = 8;
		client->layout.columns[0].max_len = 64;
	}
	filled->nrows = (uint32_t) batch.nrows;
	filled->rows_bytes = (uint32_t) (batch.rows_end - batch.base);
}

/* How a job may end. */
static void
add_rows(World *world, RandomClient *client, uint64_t nrows)
{
	RandomClient *consumer = consumer_of(world, client);

	client->nrows += nrows;
	if (consumer != NULL && consumer != client)
		consumer->nrows += nrows;
}

static void
say_filled(World *world, RandomClient *client, bool sane)
{
	Dice	   *dice = world->dice;
	GsBatchFilled filled = {.buffer = (uint32_t) dice_below(dice, client->nbuffers)};

	if (client->buffer_pool == NULL || client->nbuffers == 0)
		return;
	if (sane && client->given[filled.buffer] > 0)
		return;
	fill_buffer(world, client, filled.buffer, &filled);
	client->layout.nrows += filled.nrows;
	add_rows(world, client, filled.nrows);
	if (!sane)
	{
		switch (dice_below(dice, 3))
		{
			case 0:
				filled.buffer = (uint32_t) dice_any_width(dice, 32);
				break;
			case 1:
				filled.nrows = (uint32_t) dice_any_width(dice, 32);
				add_rows(world, client, filled.nrows);
				break;
			default:
				filled.rows_bytes = (uint32_t) dice_any_width(dice, 32);
		}
	}
	if (filled.buffer < GS_MAX_BUFFERS)
		client->given[filled.buffer]++;
	send_message(client, &filled, GS_MESSAGE_BATCH_FILLED, sizeof(filled));
}

static void
say_sort(World *world, RandomClient *client, bool sane)
{
	Dice	   *dice = world->dice;
	GsSortRequest request = {
		.algorithm = (uint32_t) dice_below(dice, 2),
		.partial = dice_one_in(dice, 4),
		.layout = client->layout
	};

	if (!sane)
	{
		unsigned char *bytes = (unsigned char *) &request.layout;

		/* the header and the first column and field matter most */
		for (uint64_t n = 1 + dice_below(dice, 8); n > 0; n--)
			bytes[dice_below(dice, dice_one_in(dice, 2) ? 64 : sizeof(request.layout))] ^=
				(unsigned char) dice_below(dice, 256);
		if (dice_one_in(dice, 4))
			request.algorithm = (uint32_t) dice_word(dice);
	}
	client->stage = STAGE_SORTING;
	send_message(client, &request, GS_MESSAGE_SORT, sizeof(request));
}

static void
say_released(World *world, RandomClient *client, bool sane)
{
	Dice	   *dice = world->dice;
	GsBufferMessage released = {.buffer = (uint32_t) dice_below(dice, client->nbuffers)};

	if (sane && (client->nbuffers == 0 || client->given[released.buffer] > 0))
		return;
	if (!sane)
		released.buffer = (uint32_t) dice_any_width(dice, 32);
	if (released.buffer < GS_MAX_BUFFERS)
		client->given[released.buffer]++;
	send_message(client, &released, GS_MESSAGE_BATCH_RELEASED, sizeof(released));
}

static void
say_fetch(World *world, RandomClient *client, bool sane)
{
	Dice	   *dice = world->dice;
	const RandomClient *consumer = consumer_of(world, client);
	GsFetch		fetch = {.stream = (uint32_t) dice_below(dice, 5)};

	if (client->reads && consumer != NULL)
		client->nrows = consumer->nrows;
	if (sane && client->nrows == 0)
		return;
	fetch.position = sane ? dice_below(dice, client->nrows) : dice_any_width(dice, 64);
	send_message(client, &fetch, GS_MESSAGE_FETCH, sizeof(fetch));
}

/* A reader fetches, if the rows are sorted. */
static void
say_fetch_of(World *world, RandomClient *client)
{
	const RandomClient *consumer = consumer_of(world, client);

	if (consumer != NULL && consumer->stage == STAGE_SORTED)
		say_fetch(world, client, true);
}

static void
say_plain(RandomClient *client, GsMessageType type, Stage stage)
{
	GsMessage	message;

	if (type == GS_MESSAGE_JOB_CLOSE)
	{
		client->token = 0;
		client->joined = 0;
		client->has_job = false;
	}
	client->stage = stage;
	send_message(client, &message, type, sizeof(message));
}

/* Random bytes, sometimes with a valid beginning. */
static void
say_anything(World *world, RandomClient *client)
{
	Dice	   *dice = world->dice;
	GsAnyMessage any[2];
	size_t		nbytes = dice_below(dice, dice_one_in(dice, 3) ? sizeof(any) : 64);

	memset(any, 0, sizeof(any));
	for (size_t i = 0; i < nbytes && i < 64; i++)
		((unsigned char *) any)[i] = (unsigned char) dice_below(dice, 256);
	if (nbytes >= sizeof(GsMessage) && !dice_one_in(dice, 4))
	{
		any[0].message.type = (uint32_t) dice_below(dice, GS_MESSAGE_JOB_CLOSE + 2);
		any[0].message.nbytes = (uint32_t) nbytes;
	}
	client_send(client, any, nbytes, dice_one_in(dice, 3) ? client->socket : -1,
				(int) dice_below(dice, 5));
}

static void
scribble(World *world, RandomClient *client)
{
	if (client->buffer_pool == NULL)
		return;
	for (int i = 0; i < 8; i++)
		client->buffer_pool[dice_below(world->dice, (uint64_t) BUFFER_BYTES * client->nbuffers)] ^=
			(char) dice_below(world->dice, 256);
}

/* A legal next step of a client. */
static void
act_sanely(World *world, RandomClient *client)
{
	Dice	   *dice = world->dice;
	bool		closes = dice_one_in(dice, 12);

	switch (client->stage)
	{
		case STAGE_NEW:
			say_hello(world, client, true);
			break;
		case STAGE_IDLE:
			if (dice_one_in(dice, 4) || !say_join(world, client, true))
				say_open(world, client, true);
			break;
		case STAGE_FEEDING:
			if (closes && dice_one_in(dice, 4))
				say_plain(client, GS_MESSAGE_JOB_CLOSE, STAGE_IDLE);
			else if (dice_one_in(dice, 6))
				send_producer_end(world, client, true);
			else
				say_filled(world, client, true);
			break;
		case STAGE_FEED_FULL:
			send_producer_end(world, client, true);
			break;
		case STAGE_READING:
			if (closes && dice_one_in(dice, 4))
				say_plain(client, GS_MESSAGE_JOB_CLOSE, STAGE_IDLE);
			else if (dice_one_in(dice, 3))
				say_fetch_of(world, client);
			else
				say_released(world, client, true);
			break;
		case STAGE_JOINING:
		case STAGE_ENDING:
			break;
		case STAGE_OPENING:
			if (closes)
				say_plain(client, GS_MESSAGE_JOB_CLOSE, STAGE_IDLE);
			break;
		case STAGE_LOADING:
			if (closes)
				say_plain(client, GS_MESSAGE_JOB_CLOSE, STAGE_IDLE);
			else if (dice_one_in(dice, 6))
			{
				if (!has_producers(world, client))
					say_sort(world, client, true);
			}
			else
				say_filled(world, client, true);
			break;
		case STAGE_SORTED:
			if (closes)
				say_plain(client, GS_MESSAGE_JOB_CLOSE, STAGE_IDLE);
			else if (dice_one_in(dice, 3))
				say_fetch(world, client, true);
			else
				say_released(world, client, true);
			break;
		case STAGE_FULL:
			if (dice_one_in(dice, 3) && !has_producers(world, client))
				say_plain(client, GS_MESSAGE_RETURN_INPUT, STAGE_DRAINING);
			else
				say_released(world, client, true);
			break;
		case STAGE_SORTING:
		case STAGE_DRAINING:
			if (closes)
				say_plain(client, GS_MESSAGE_JOB_CLOSE, STAGE_IDLE);
			else
				say_released(world, client, true);
			break;
		case STAGE_FAILED:
			say_plain(client, GS_MESSAGE_JOB_CLOSE, STAGE_IDLE);
			break;
	}
}

static void
act_badly(World *world, RandomClient *client)
{
	Dice	   *dice = world->dice;

	switch (dice_below(dice, 14))
	{
		case 0:
			say_hello(world, client, dice_one_in(dice, 2));
			break;
		case 1:
			say_open(world, client, dice_one_in(dice, 2));
			break;
		case 2:
			say_filled(world, client, false);
			break;
		case 3:
			say_sort(world, client, dice_one_in(dice, 4));
			break;
		case 4:
			say_fetch(world, client, dice_one_in(dice, 2));
			break;
		case 5:
			say_released(world, client, dice_one_in(dice, 2));
			break;
		case 6:
			say_plain(client, GS_MESSAGE_RETURN_INPUT, STAGE_DRAINING);
			break;
		case 7:
			say_plain(client, GS_MESSAGE_JOB_CLOSE, STAGE_IDLE);
			break;
		case 8:
			client_leave(client);
			break;
		case 9:
			say_anything(world, client);
			break;
		case 10:
			say_join(world, client, dice_one_in(dice, 2));
			break;
		case 11:
			send_producer_end(world, client, false);
			break;
		default:
			scribble(world, client);
	}
}

/* ---------------------------------------------------------------- the world */

/* A turn of the server loop. */
static void
turn(World *world)
{
	GsService  *service = &world->service;

	for (int i = 0; i < NCLIENTS; i++)
	{
		GsConnection *connection = world->clients[i].connection;

		if (connection == NULL)
			continue;
		gs_connection_read(connection);
		gs_connection_poll(connection);
		if (connection->job != NULL && gs_job_can_be_parked(connection->job) &&
			dice_one_in(world->dice, 10))
			gs_job_park(connection->job, service->park_folder);
	}
	CHECK(gs_list_is_empty(&service->waiting) == (service->nwaiting == 0));
	gs_admission_run(service);
	for (int i = 0; i < NCLIENTS; i++)
	{
		RandomClient *client = &world->clients[i];

		if (client->connection != NULL && client->connection->state == STATE_CLOSED &&
			gs_connection_end(client->connection))
			client->connection = NULL;
	}
	CHECK_MSG(!service->device_failed, "the device broke: %s", service->device_error);
}

static void
step(World *world)
{
	Dice	   *dice = world->dice;
	RandomClient *client = &world->clients[dice_below(dice, NCLIENTS)];

	if (client->socket < 0)
	{
		if (client->connection == NULL)
			client_arrive(world, client);
	}
	else if (dice_one_in(dice, 20))
		act_badly(world, client);
	else
		act_sanely(world, client);
	for (uint64_t n = dice_below(dice, 4); n > 0; n--)
		turn(world);
	client_read(world, client);
}

void
messages_run(Dice *dice, int max_steps, MessagesReached *reached)
{
	World		world = {.dice = dice,.reached = reached};
	GsService  *service = &world.service;
	GsDevice   *device;
	GsDevicePool *pool;
	GsParkFolder *disk;
	char		why_not[GS_FAILED_TEXT_BYTES];
	int			lowest_before = dup(STDERR_FILENO);
	int			lowest_after;
	bool		any = true;

	close(lowest_before);
	device = gs_device_host_open(0, DEVICE_BYTES, why_not, sizeof(why_not));
	CHECK(device != NULL);
	pool = gs_device_pool_create(device, LIMIT_BYTES);
	disk = gs_park_folder_create("/tmp", DISK_BYTES);
	CHECK(pool != NULL && disk != NULL && gs_service_open(service, device, pool, disk, &world.slot));
	for (int i = 0; i < NCLIENTS; i++)
		client_arrive(&world, &world.clients[i]);

	for (int i = 0; i < max_steps && (dice->data == NULL || dice->left > 0); i++)
		step(&world);

	for (int i = 0; i < NCLIENTS; i++)
		client_leave(&world.clients[i]);
	for (int i = 0; i < 10000 && any; i++)
	{
		turn(&world);
		any = false;
		for (int j = 0; j < NCLIENTS; j++)
			any |= world.clients[j].connection != NULL;

		/* another thread reads and writes files */
		if (any && i > 100)
			usleep(1000);
	}
	CHECK_MSG(!any, "connections do not end");
	CHECK(service->njobs == 0 && service->nwaiting == 0);
	close(service->epoll);
	CHECK(pool->used == 0 && pool->committed == 0);
	while (gs_device_pool_release_idle(pool, gs_clock_us(), 0))
		;
	CHECK(gs_device_pool_reserved(pool) == 0);
	gs_device_pool_destroy(pool);
	gs_park_folder_destroy(disk);
	device->ops->close(device);

	lowest_after = dup(STDERR_FILENO);
	close(lowest_after);
	CHECK_MSG(lowest_before == lowest_after, "a descriptor is left open");
}
