BEGIN TRANSACTION;
CREATE TABLE about_answers (
	participant_id INTEGER NOT NULL, 
	item TEXT NOT NULL, 
	value TEXT NOT NULL, 
	saved_ms BIGINT NOT NULL, 
	PRIMARY KEY (participant_id, item), 
	FOREIGN KEY(participant_id) REFERENCES participants (id)
);
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "alembic_version" VALUES('s_0003');
CREATE TABLE answers (
	id INTEGER NOT NULL, 
	assignment_id INTEGER NOT NULL, 
	part TEXT NOT NULL, 
	item TEXT NOT NULL, 
	value TEXT, 
	saved_ms BIGINT NOT NULL, 
	PRIMARY KEY (id), 
	FOREIGN KEY(assignment_id) REFERENCES assignments (id)
);
INSERT INTO "answers" VALUES(1,1,'0','narrative_ending','Yes',1763888400000);
CREATE TABLE assignments (
	id INTEGER NOT NULL, 
	participant_id INTEGER NOT NULL, 
	unit TEXT NOT NULL, 
	"order" TEXT NOT NULL, 
	state TEXT NOT NULL, 
	page TEXT NOT NULL, 
	given_ms BIGINT NOT NULL, 
	seen_ms BIGINT NOT NULL, 
	done_ms BIGINT, 
	PRIMARY KEY (id), 
	UNIQUE (participant_id, unit), 
	FOREIGN KEY(participant_id) REFERENCES participants (id)
);
INSERT INTO "assignments" VALUES(1,1,'g','0,1','open','',1763888400000,1763888400000,NULL);
CREATE TABLE audit (
	id INTEGER NOT NULL, 
	at_ms BIGINT NOT NULL, 
	who TEXT NOT NULL, 
	what TEXT NOT NULL, 
	detail TEXT NOT NULL, 
	PRIMARY KEY (id)
);
CREATE TABLE consent_texts (
	version TEXT NOT NULL, 
	text TEXT NOT NULL, 
	PRIMARY KEY (version)
);
CREATE TABLE consents (
	id INTEGER NOT NULL, 
	participant_id INTEGER NOT NULL, 
	what TEXT NOT NULL, 
	version TEXT NOT NULL, 
	at_ms BIGINT NOT NULL, 
	PRIMARY KEY (id), 
	FOREIGN KEY(participant_id) REFERENCES participants (id)
);
CREATE TABLE contents (
	digest TEXT NOT NULL, 
	words TEXT NOT NULL, 
	PRIMARY KEY (digest)
);
INSERT INTO "contents" VALUES('9f86d081884c7d65','"Thank you."');
CREATE TABLE page_views (
	id INTEGER NOT NULL, 
	assignment_id INTEGER NOT NULL, 
	page TEXT NOT NULL, 
	at_ms BIGINT NOT NULL, version INTEGER, 
	PRIMARY KEY (id), 
	FOREIGN KEY(assignment_id) REFERENCES assignments (id)
);
CREATE TABLE participants (
	id INTEGER NOT NULL, 
	token_hash TEXT NOT NULL, 
	platform_id TEXT, 
	state TEXT NOT NULL, 
	note TEXT NOT NULL, 
	made_ms BIGINT NOT NULL, 
	consented_ms BIGINT, 
	quiz_ms BIGINT, 
	n_right INTEGER, 
	PRIMARY KEY (id), 
	UNIQUE (token_hash), 
	UNIQUE (platform_id)
);
INSERT INTO "participants" VALUES(1,'00',NULL,'ready','',1763888400000,NULL,NULL,NULL);
CREATE TABLE quiz_tries (
	id INTEGER NOT NULL, 
	participant_id INTEGER NOT NULL, 
	n_right INTEGER NOT NULL, 
	given TEXT NOT NULL, 
	at_ms BIGINT NOT NULL, 
	PRIMARY KEY (id), 
	FOREIGN KEY(participant_id) REFERENCES participants (id)
);
CREATE TABLE resolutions (
	id INTEGER NOT NULL, 
	document_id TEXT NOT NULL, 
	item TEXT NOT NULL, 
	value TEXT, 
	note TEXT NOT NULL, 
	at_ms BIGINT NOT NULL, 
	PRIMARY KEY (id)
);
CREATE TABLE sessions (
	token_hash TEXT NOT NULL, 
	ends_ms BIGINT NOT NULL, 
	PRIMARY KEY (token_hash)
);
CREATE TABLE settings (
	"key" TEXT NOT NULL, 
	value TEXT NOT NULL, 
	PRIMARY KEY ("key")
);
INSERT INTO "settings" VALUES('study','study');
INSERT INTO "settings" VALUES('questions','22445c09');
INSERT INTO "settings" VALUES('documents','3e02a5ee');
CREATE TABLE signs (
	assignment_id INTEGER NOT NULL, 
	part TEXT NOT NULL, 
	item TEXT NOT NULL, 
	load TEXT NOT NULL, 
	n_pastes INTEGER NOT NULL, 
	n_leaves INTEGER NOT NULL, 
	n_keys INTEGER NOT NULL, 
	saved_ms BIGINT NOT NULL, 
	PRIMARY KEY (assignment_id, part, item, load), 
	FOREIGN KEY(assignment_id) REFERENCES assignments (id)
);
CREATE TABLE steps (
	participant_id INTEGER NOT NULL, 
	step TEXT NOT NULL, 
	at_ms BIGINT NOT NULL, 
	PRIMARY KEY (participant_id, step), 
	FOREIGN KEY(participant_id) REFERENCES participants (id)
);
CREATE TABLE texts_shown (
	participant_id INTEGER NOT NULL, 
	version INTEGER NOT NULL, 
	at_ms BIGINT NOT NULL, 
	PRIMARY KEY (participant_id, version), 
	FOREIGN KEY(participant_id) REFERENCES participants (id)
);
INSERT INTO "texts_shown" VALUES(1,1,1763888400000);
CREATE TABLE tokens (
	token_hash TEXT NOT NULL, 
	participant_id INTEGER NOT NULL, 
	PRIMARY KEY (token_hash), 
	FOREIGN KEY(participant_id) REFERENCES participants (id)
);
CREATE TABLE versions (
	number INTEGER NOT NULL, 
	at_ms BIGINT NOT NULL, 
	why TEXT NOT NULL, 
	digest TEXT NOT NULL, 
	content TEXT NOT NULL, 
	PRIMARY KEY (number)
);
INSERT INTO "versions" VALUES(1,1763888400000,'as the study began','d560bb1e','{"fixed": {}, "texts": {"thanks": "9f86d081884c7d65"}, "documents": {}, "units": {}, "set_fields": []}');
CREATE TABLE visits (
	id INTEGER NOT NULL, 
	participant_id INTEGER NOT NULL, 
	platform TEXT NOT NULL, 
	study TEXT NOT NULL, 
	session TEXT NOT NULL, 
	address TEXT NOT NULL, 
	at_ms BIGINT NOT NULL, 
	status TEXT, 
	status_ms BIGINT, 
	state_before TEXT, 
	PRIMARY KEY (id), 
	UNIQUE (participant_id, session), 
	FOREIGN KEY(participant_id) REFERENCES participants (id)
);
CREATE INDEX assignments_by_unit ON assignments (unit, state);
CREATE INDEX answers_by_assignment ON answers (assignment_id, id);
CREATE INDEX visits_by_address ON visits (address, at_ms);
CREATE INDEX resolutions_by_question ON resolutions (document_id, item);
CREATE INDEX page_views_by_assignment ON page_views (assignment_id, id);
COMMIT;
